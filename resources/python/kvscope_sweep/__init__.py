"""`kvscope sweep` on many machines: captures x layers x policies x seeds as tasks of a Dask cluster."""
