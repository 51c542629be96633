"""Reads the TOML configuration of `multihead train` as far as the twin follows it."""
import tomllib

# docs/configuration.md says what each key means.
DEFAULTS = {
    "model": dict(kind="transformer", vocabulary=0, width=256, heads=4, feed_forward=1024, encoder_layers=3,
                  decoder_layers=3, norm="pre", activation="relu", positions="sinusoidal", dropout=0.1, tied=True,
                  max_length=256),
    "tokenizer": dict(path=""),
    "data": dict(train="", train_target="", valid="", valid_target="", source_column=1, target_column=2,
                 tokens_per_batch=4096, window=65536, max_length=0),
    "optimizer": dict(learning_rate=1e-3, beta1=0.9, beta2=0.98, epsilon=1e-8, weight_decay=0.01, clip=1.0,
                      schedule="cosine", warmup=1000),
    "train": dict(output="", epochs=20, steps=0, seed=1, precision="f32", label_smoothing=0.1, accumulate=1, ema=0.0,
                  validate_every=0, patience=0),
}
# Where our program can do more than the twin.
KNOWN = {("model", "kind"): ["transformer"], ("model", "activation"): ["relu", "gelu"],
         ("model", "positions"): ["sinusoidal"], ("data", "train_target"): [""], ("data", "valid_target"): [""],
         ("train", "patience"): [0]}


def read_settings(path, changes=()):
    """The tables of DEFAULTS, with what the file says and then `changes` ("section.key=value" in TOML) put over them."""
    with open(path, "rb") as file:
        given = tomllib.load(file)
    for change in changes:
        name, _, value = change.partition("=")
        section, _, key = name.partition(".")
        try:
            value = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            pass  # a bare word: text
        given.setdefault(section, {})[key] = value
    settings = {section: {**table, **given.get(section, {})} for section, table in DEFAULTS.items()}
    for (section, key), known in KNOWN.items():
        if settings[section][key] not in known:
            raise SystemExit(f"twin: {section}.{key} is {settings[section][key]!r}; the twin knows {known}")
    settings["data"]["max_length"] = settings["data"]["max_length"] or settings["model"]["max_length"]
    return settings
