"""Tiny configurations as found on the Hugging Face Hub: old names, defaults left out, patterns of layers."""

from __future__ import annotations

from typing import Any

from tiny_models import COMMON

EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=16)
LLAMA3 = dict(
    rope_type="llama3",
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
YARN = dict(type="yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=32, beta_slow=1)
GEMMA = dict(head_dim=16, query_pre_attn_scalar=24, hidden_activation="gelu_pytorch_tanh")


def hub(model_type: str, **fields: Any) -> dict[str, Any]:
    """A config.json; fields that are None are left out."""
    return {"model_type": model_type} | {k: v for k, v in (COMMON | fields).items() if v is not None}


HUB: dict[str, dict[str, Any]] = {
    "llama-without-theta": hub("llama", num_key_value_heads=None),
    "llama-3": hub("llama", rope_theta=500.0, rope_scaling=LLAMA3),
    "llama-linear": hub("llama", rope_theta=1000.0, rope_scaling={"type": "linear", "factor": 4.0}),
    "llama-yarn": hub("llama", rope_theta=1000.0, rope_scaling=YARN),
    "llama-wide-heads": hub("llama", head_dim=12, rope_theta=2000.0),
    "mistral": hub("mistral", sliding_window=9, rope_theta=1000.0),
    "mistral-without-window": hub("mistral", sliding_window=None) | {"sliding_window": None},
    "mixtral": hub("mixtral", sliding_window=None, num_local_experts=4, num_experts_per_tok=2),
    "qwen2": hub("qwen2", use_sliding_window=False, sliding_window=7, max_window_layers=1),
    "qwen2-window": hub("qwen2", use_sliding_window=True, sliding_window=7, max_window_layers=1),
    "qwen2-moe": hub("qwen2_moe", num_experts=4, shared_expert_intermediate_size=16, sliding_window=7, **EXPERTS),
    "qwen3": hub("qwen3", head_dim=16, use_sliding_window=False, sliding_window=None),
    "qwen3-moe": hub("qwen3_moe", head_dim=16, num_experts=4, **EXPERTS),
    "gemma2": hub("gemma2", **GEMMA, sliding_window=7, attn_logit_softcapping=2.0, final_logit_softcapping=3.0),
    "gemma3": hub(
        "gemma3_text",
        **GEMMA,
        sliding_window=7,
        sliding_window_pattern=3,
        rope_theta=10000.0,
        rope_local_base_freq=100.0,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
    ),
    "phi3": hub("phi3", sliding_window=11, rope_theta=10000.0, original_max_position_embeddings=512),
    "phi3-partial": hub("phi3", sliding_window=None, partial_rotary_factor=0.5, original_max_position_embeddings=512),
    "olmo2": hub("olmo2", rope_theta=5000.0),
    "gpt2": dict(
        model_type="gpt2",
        vocab_size=97,
        n_embd=32,
        n_layer=3,
        n_head=4,
        n_positions=512,
        bos_token_id=0,
        eos_token_id=0,
    ),
    "gpt-neox": hub("gpt_neox", num_key_value_heads=None, rotary_pct=0.5, rotary_emb_base=1000),
    "granite": hub(
        "granite", attention_multiplier=0.05, logits_scaling=4.0, residual_multiplier=0.3, embedding_multiplier=2.0
    ),
    "cohere": hub("cohere", logit_scale=0.25, rope_theta=8000.0, use_qk_norm=False),
    "cohere-qk-norm": hub("cohere", logit_scale=0.25, use_qk_norm=True),
    "smollm3": hub("smollm3", no_rope_layer_interval=2, use_sliding_window=False, rope_theta=2000.0),
    "glm4": hub("glm4", head_dim=16, partial_rotary_factor=0.5, rope_theta=10000.0),
    "afmoe": hub(
        "afmoe",
        head_dim=8,
        sliding_window=7,
        num_experts=4,
        num_dense_layers=1,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        **EXPERTS,
    ),
    "gpt-oss": hub(
        "gpt_oss",
        head_dim=16,
        sliding_window=7,
        num_local_experts=4,
        num_experts_per_tok=2,
        rope_theta=1500.0,
        rope_scaling=dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=64, truncate=False),
    ),
    "deepseek-v3": hub(
        "deepseek_v3",
        num_key_value_heads=4,
        q_lora_rank=12,
        kv_lora_rank=10,
        qk_rope_head_dim=8,
        qk_nope_head_dim=16,
        v_head_dim=12,
        n_routed_experts=4,
        n_group=2,
        topk_group=1,
        n_shared_experts=1,
        first_k_dense_replace=1,
        rope_theta=1000.0,
        rope_scaling=YARN | dict(mscale=1.0, mscale_all_dim=1.0),
        **EXPERTS,
    ),
}
