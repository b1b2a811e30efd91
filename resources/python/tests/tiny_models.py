"""Tiny randomly initialised models of every tested architecture, with the traits that make each one difficult."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

VOCABULARY = 97
COMMON: dict[str, Any] = dict(
    vocab_size=VOCABULARY,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    pad_token_id=0,
    bos_token_id=0,
    eos_token_id=0,
    tie_word_embeddings=False,
)


def llama3_rope() -> dict[str, Any]:
    return dict(
        rope_type="llama3",
        rope_theta=500.0,
        factor=8.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=64,
    )


def yarn_rope() -> dict[str, Any]:
    return dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=64)


def long_rope(pairs: int) -> dict[str, Any]:
    return dict(
        rope_type="longrope",
        rope_theta=1000.0,
        short_factor=[1.0] * pairs,
        long_factor=[2.0 + i for i in range(pairs)],
        factor=8.0,
        original_max_position_embeddings=24,
    )


GEMMA = dict(head_dim=16, sliding_window=7, query_pre_attn_scalar=24, hidden_activation="gelu_pytorch_tanh")

CONFIGS: dict[str, Any] = {
    "llama": lambda: transformers.LlamaConfig(**COMMON, rope_parameters=llama3_rope()),
    "llama-yarn": lambda: transformers.LlamaConfig(**COMMON, rope_parameters=yarn_rope()),
    "qwen2": lambda: transformers.Qwen2Config(**COMMON, use_sliding_window=False),
    "qwen3": lambda: transformers.Qwen3Config(**COMMON, head_dim=16),
    "mistral": lambda: transformers.MistralConfig(**COMMON, sliding_window=9, head_dim=8),
    "gemma2": lambda: transformers.Gemma2Config(
        **COMMON, **GEMMA, attn_logit_softcapping=2.0, final_logit_softcapping=3.0
    ),
    "gemma3": lambda: transformers.Gemma3TextConfig(
        **COMMON,
        **GEMMA,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={
            "sliding_attention": dict(rope_type="default", rope_theta=100.0),
            "full_attention": dict(rope_type="linear", rope_theta=10000.0, factor=8.0),
        },
    ),
    "phi3": lambda: transformers.Phi3Config(**COMMON, sliding_window=11, partial_rotary_factor=1.0),
    "phi3-partial": lambda: transformers.Phi3Config(
        **COMMON, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)
    ),
    "phi3-long": lambda: transformers.Phi3Config(
        **COMMON | dict(max_position_embeddings=192),
        rope_parameters=long_rope(4),
        original_max_position_embeddings=24,
    ),
    "mixtral": lambda: transformers.MixtralConfig(**COMMON, num_local_experts=4, num_experts_per_tok=2),
    "qwen3-moe": lambda: transformers.Qwen3MoeConfig(
        **COMMON, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16
    ),
    "olmo2": lambda: transformers.Olmo2Config(**COMMON),
    "granite": lambda: transformers.GraniteConfig(
        **COMMON, attention_multiplier=0.05, logits_scaling=4.0, residual_multiplier=0.5, embedding_multiplier=2.0
    ),
    "cohere": lambda: transformers.CohereConfig(**COMMON, logit_scale=0.25),
    "smollm3": lambda: transformers.SmolLM3Config(**COMMON, no_rope_layers=[1, 0, 1], use_sliding_window=False),
    "glm4": lambda: transformers.Glm4Config(**COMMON, head_dim=16, partial_rotary_factor=0.5),
    "gpt-neox": lambda: transformers.GPTNeoXConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=512,
        rotary_pct=0.5,
        bos_token_id=0,
        eos_token_id=0,
    ),
    "gpt-oss": lambda: transformers.GptOssConfig(
        **COMMON,
        head_dim=16,
        sliding_window=9,
        num_local_experts=4,
        num_experts_per_tok=2,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters=yarn_rope(),
    ),
    "deepseek-v3": lambda: transformers.DeepseekV3Config(
        **COMMON | dict(num_key_value_heads=4),
        q_lora_rank=24,
        kv_lora_rank=16,
        qk_nope_head_dim=16,
        qk_rope_head_dim=8,
        v_head_dim=12,
        n_routed_experts=4,
        num_experts_per_tok=2,
        n_group=1,
        topk_group=1,
        moe_intermediate_size=16,
        first_k_dense_replace=1,
    ),
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=3, n_head=4, n_positions=512, bos_token_id=0, eos_token_id=0
    ),
}


# In these models only some layers attend (the others are recurrent or convolutions), or a gate or a norm follows
# attention, or the modules have other names than in most models (Moshi, CTRL).
FOUR = COMMON | dict(num_hidden_layers=4)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
SECOND = dict(layer_types=["linear_attention", "full_attention"] * 2)
DELTA = dict(linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8)
MAMBA2 = dict(mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=1, mamba_d_state=8)
LATENT = dict(num_key_value_heads=4, kv_lora_rank=16, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12)
MIXED: dict[str, dict[str, Any]] = {
    "qwen3_next": FOUR | SECOND | DELTA | EXPERTS | dict(head_dim=16, shared_expert_intermediate_size=16),
    "qwen3_5_text": FOUR | SECOND | DELTA | dict(head_dim=16),
    "qwen3_5_moe_text": FOUR | SECOND | DELTA | EXPERTS | dict(head_dim=16, shared_expert_intermediate_size=16),
    "olmo_hybrid": FOUR | SECOND | DELTA,
    "kimi_linear": FOUR | SECOND | LATENT | dict(q_lora_rank=None, num_experts=4, num_experts_per_token=2),
    "bailing_hybrid": FOUR | SECOND | LATENT | EXPERTS | dict(q_lora_rank=24, n_group=1, topk_group=1),
    "minimax": FOUR | SECOND | dict(head_dim=16, num_local_experts=2, num_experts_per_tok=1, block_size=16),
    "jamba": FOUR
    | dict(attn_layer_period=2, attn_layer_offset=1, num_experts=2, num_experts_per_tok=1, use_mamba_kernels=False)
    | dict(mamba_d_state=8, mamba_dt_rank=4),
    "granitemoehybrid": FOUR
    | MAMBA2
    | dict(layer_types=["mamba", "attention"] * 2, shared_intermediate_size=48, num_local_experts=4)
    | dict(num_experts_per_tok=2, position_embedding_type="rope", attention_multiplier=0.05),
    "nemotron_h": COMMON
    | dict(head_dim=8, hybrid_override_pattern="M*-*", num_hidden_layers=4, chunk_size=16)
    | dict(mamba_num_heads=8, mamba_head_dim=8, ssm_state_size=8, n_groups=1),
    "bamba": FOUR | MAMBA2 | dict(attn_layer_indices=[1, 3]),
    "zamba": FOUR
    | dict(attention_head_dim=16, attn_layer_period=2, attn_layer_offset=1, use_mamba_kernels=False)
    | dict(mamba_d_state=8, mamba_dt_rank=4),
    "zamba2": FOUR
    | dict(num_key_value_heads=4, layers_block_type=["mamba", "hybrid"] * 2, use_mem_rope=True, adapter_rank=4)
    | dict(mamba_d_state=8, mamba_ngroups=1, n_mamba_heads=8, mamba_headdim=8, use_shared_attention_adapter=True),
    "falcon_h1": COMMON | MAMBA2 | dict(head_dim=8, mamba_d_ssm=32, mamba_n_heads=4),
    "lfm2": COMMON | dict(layer_types=["conv", "full_attention", "full_attention"]),
    "lfm3": COMMON,
    "lfm2_moe": COMMON | EXPERTS | dict(layer_types=["conv", "full_attention", "full_attention"], num_dense_layers=1),
    "recurrent_gemma": COMMON
    | dict(block_types=["recurrent", "recurrent", "attention"], attention_window_size=9, lru_width=32, head_dim=8),
    "afmoe": COMMON
    | EXPERTS
    | dict(head_dim=8, sliding_window=9, num_dense_layers=1)
    | dict(layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "beam": COMMON
    | EXPERTS
    | dict(head_dim=8, sliding_window=9, n_group=1, topk_group=1)
    | dict(layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "zaya": COMMON
    | dict(head_dim=8, sliding_window=9, num_experts=4, num_experts_per_tok=1, moe_intermediate_size=16)
    | dict(router_hidden_size=16, layer_types=["hybrid", "hybrid_sliding", "hybrid"]),
    "bitnet": COMMON,
    "laguna": COMMON | EXPERTS | dict(head_dim=8, shared_expert_intermediate_size=16),
    "moshi": COMMON | dict(ffn_dim=48),
    "ctrl": dict(vocab_size=VOCABULARY, n_embd=32, dff=48, n_layer=3, n_head=4),
}


def config_of(kind: str, sizes: dict[str, Any]) -> Any:
    """The configuration; skips the test where this version of Transformers has no such architecture."""
    from transformers import CONFIG_MAPPING

    if kind not in CONFIG_MAPPING:
        pytest.skip(f"this version of Transformers has no {kind}")
    return transformers.AutoConfig.for_model(kind, **sizes)


def mixed_model(kind: str) -> Any:
    """A model of `MIXED`."""
    return random_model(config_of(kind, MIXED[kind]), 0)


def whisper_config() -> Any:
    """Encoder and decoder differ in layers and heads."""
    encoder = dict(encoder_layers=2, encoder_attention_heads=2, encoder_ffn_dim=48)
    decoder = dict(decoder_layers=3, decoder_attention_heads=4, decoder_ffn_dim=48, max_target_positions=512)
    tokens = dict(pad_token_id=0, bos_token_id=0, eos_token_id=0, decoder_start_token_id=0)
    return transformers.WhisperConfig(vocab_size=VOCABULARY, d_model=32, **encoder, **decoder, **tokens)


def tiny_model(name: str, seed: int = 0) -> Any:
    return random_model(CONFIGS[name](), seed)


def unlike_config(kind: str) -> Any:
    """A small configuration of an architecture that no capture holds, or of `MIXED`."""
    own: dict[str, dict[str, Any]] = {
        "mamba": dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=3, state_size=8),
        "rwkv": dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=3, attention_hidden_size=32),
        "mpt": dict(vocab_size=VOCABULARY, d_model=32, n_heads=4, n_layers=3, max_seq_len=512),
        "bert": COMMON | dict(is_decoder=True),
        "bloom": dict(vocab_size=VOCABULARY, hidden_size=32, n_layer=3, n_head=4),
        "falcon": dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=3, num_attention_heads=4),
        "codegen": dict(vocab_size=VOCABULARY, n_embd=32, n_layer=3, n_head=4, rotary_dim=4)
        | dict(bos_token_id=0, eos_token_id=0),
        "xlnet": dict(vocab_size=VOCABULARY, d_model=32, n_layer=3, n_head=4, d_inner=48),
        "llama4_text": COMMON | dict(head_dim=8, intermediate_size_mlp=48, num_local_experts=2, pad_token_id=0),
        "gemma4_text": COMMON
        | dict(head_dim=16, global_head_dim=32, hidden_size_per_layer_input=0, num_kv_shared_layers=0)
        | dict(layer_types=["sliding_attention", "sliding_attention", "full_attention"], sliding_window=16),
        "gemma3n_text": COMMON
        | dict(head_dim=8, hidden_size_per_layer_input=4, vocab_size_per_layer_input=VOCABULARY, laurel_rank=4)
        | dict(num_kv_shared_layers=0, activation_sparsity_pattern=[0.0] * 3, intermediate_size=[48] * 3)
        | dict(layer_types=["full_attention"] * 3),
        "blt": {},
        "modernbert-decoder": COMMON | dict(local_attention=8, cls_token_id=0, sep_token_id=0),
        "phimoe": COMMON | dict(sliding_window=7, num_local_experts=4, num_experts_per_tok=2),
        "inkling_text": COMMON | dict(head_dim=8, num_local_experts=4, num_experts_per_tok=2),
        "bart": dict(vocab_size=VOCABULARY, d_model=32, decoder_layers=3, decoder_attention_heads=4, decoder_ffn_dim=48)
        | dict(encoder_layers=3, encoder_attention_heads=4, encoder_ffn_dim=48, pad_token_id=0, bos_token_id=0)
        | dict(eos_token_id=0, forced_eos_token_id=None, decoder_start_token_id=0, scale_embedding=True),
        "bigbird_pegasus": dict(vocab_size=VOCABULARY, d_model=32, decoder_layers=3, decoder_attention_heads=4)
        | dict(decoder_ffn_dim=48, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=48, pad_token_id=0)
        | dict(bos_token_id=0, eos_token_id=0, decoder_start_token_id=0, max_position_embeddings=512),
        "deepseek_v2": COMMON
        | LATENT
        | dict(q_lora_rank=24, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1)
        | dict(moe_intermediate_size=16, first_k_dense_replace=1, n_shared_experts=1, max_position_embeddings=48)
        | dict(rope_parameters=dict(rope_type="dynamic", rope_theta=100.0, factor=4.0)),
        "granitemoehybrid": COMMON | dict(layer_types=["attention"] * 3, shared_intermediate_size=48, mamba_n_heads=4),
        "ministral3": COMMON
        | dict(head_dim=8, sliding_window=None)
        | dict(rope_parameters=yarn_rope() | dict(original_max_position_embeddings=16, llama_4_scaling_beta=0.5)),
    }
    return config_of(kind, (MIXED | own)[kind])


def random_model(config: Any, seed: int) -> Any:
    """A float32 model in eval mode, weights large enough that attention is far from uniform."""
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", dtype=torch.float32
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                parameter.normal_(std=0.25)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.1)
        for name, parameter in model.named_parameters():
            if name.endswith("sinks"):
                parameter.normal_(std=2.0)
    return model


class LetterTokenizer:
    """A tokenizer with one token a character, BOS first; enough for prompts of the tests."""

    all_special_tokens = ["<bos>"]

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return ([0] if add_special_tokens else []) + [1 + ord(c) % (VOCABULARY - 1) for c in text]

    def convert_ids_to_tokens(self, token: int) -> str:
        return "<bos>" if token == 0 else chr(token + 32)

    def get_vocab(self) -> dict[str, int]:
        return {"<bos>": 0}

    def decode(self, ids: list[int]) -> str:
        return "".join(self.convert_ids_to_tokens(i) for i in ids)


def random_ids(n: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return [0, *torch.randint(1, VOCABULARY, (n - 1,), generator=generator).tolist()]
