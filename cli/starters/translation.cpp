// The starter of `multihead new translation`.
#include "cli/starters/starters.h"

namespace mh::cli {

namespace {

constexpr const char* kTranslationConfig =
    R"text(# Sentences are translated. To train: multihead train FOLDER/config.toml
# To use it: multihead translate FOLDER/model < LINES
# For your own pairs, `multihead train --suggest FILE.tsv` writes a configuration of the right size.
[task]
kind = "translation"

[data]
train = "FOLDER/train.tsv"     # your own: source, tab, target
source_column = 1
target_column = 2
hold_out_share = 0.1           # kept to validate with; or: valid = "FOLDER/valid.tsv"
tokens_per_batch = 1024

[tokenizer]
vocabulary = 4000              # fewer are learned where there is little text

[model]
width = 128
heads = 4
feed_forward = 512
encoder_layers = 3
decoder_layers = 3
dropout = 0.2
max_length = 128

[optimizer]
learning_rate = 1e-3
warmup = 100

[train]
output = "FOLDER/model"
epochs = 40
label_smoothing = 0.1
patience = 10
)text";

constexpr const char* kTranslationRows = R"text(Good morning.	Guten Morgen.
Good evening.	Guten Abend.
How are you?	Wie geht es dir?
I am well.	Mir geht es gut.
Thank you very much.	Vielen Dank.
Where is the station?	Wo ist der Bahnhof?
Where is the hotel?	Wo ist das Hotel?
The train is late.	Der Zug ist spät.
The bus is late.	Der Bus ist spät.
I would like a coffee.	Ich möchte einen Kaffee.
I would like a tea.	Ich möchte einen Tee.
We would like a room.	Wir möchten ein Zimmer.
How much is that?	Wie viel kostet das?
That is too expensive.	Das ist zu teuer.
It is raining.	Es regnet.
It is snowing.	Es schneit.
The sun is shining.	Die Sonne scheint.
I do not understand.	Ich verstehe nicht.
Do you speak English?	Sprechen Sie Englisch?
I speak a little German.	Ich spreche ein wenig Deutsch.
The book is on the table.	Das Buch liegt auf dem Tisch.
The key is on the table.	Der Schlüssel liegt auf dem Tisch.
My name is Anna.	Ich heiße Anna.
My name is Paul.	Ich heiße Paul.
She lives in Berlin.	Sie wohnt in Berlin.
He lives in Vienna.	Er wohnt in Wien.
We are tired.	Wir sind müde.
They are hungry.	Sie haben Hunger.
Open the door.	Öffne die Tür.
Close the window.	Schließ das Fenster.
See you tomorrow.	Bis morgen.
See you soon.	Bis bald.
The water is cold.	Das Wasser ist kalt.
The soup is hot.	Die Suppe ist heiß.
I have a question.	Ich habe eine Frage.
Have a good trip!	Gute Reise!
)text";

}  // namespace

Starter translation_starter() {
  return {.task = "translation",
          .rows = "a line is a sentence, a tab and its translation",
          .files = {{"config.toml", kTranslationConfig}, {"train.tsv", kTranslationRows}}};
}

}  // namespace mh::cli
