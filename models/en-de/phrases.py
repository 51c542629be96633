"""Sentences with places for numbers, names and tokens to copy, English and German, that augment.py fills in.

A place is a letter in braces: Y year, T time, N whole number above 12, P price, D decimal, O house or room number,
S telephone number; M man, W woman, L surname, C place; U address on the web, E of mail, K code, F file. A digit behind the
letter tells two of a kind apart. None of these sentences stands in keeping.py.
"""

PHRASES = [line.split(" | ") for line in """
I was born in {Y}. | Ich wurde {Y} geboren.
My mother was born in {Y}. | Meine Mutter wurde {Y} geboren.
He died in {Y}. | Er ist {Y} gestorben.
She got married in {Y}. | Sie hat {Y} geheiratet.
This school was founded in {Y}. | Diese Schule wurde {Y} gegründet.
The bridge was built in {Y}. | Die Brücke wurde {Y} gebaut.
We moved to {C} in {Y}. | Wir sind {Y} nach {C} gezogen.
In {Y}, I was still a child. | {Y} war ich noch ein Kind.
In {Y}, there was a big fire here. | Im Jahr {Y} gab es hier ein großes Feuer.
Since {Y}, a lot has changed. | Seit {Y} hat sich viel verändert.
The company has existed since {Y}. | Die Firma gibt es seit {Y}.
The book was first published in {Y}. | Das Buch ist zuerst {Y} erschienen.
From {Y} to {Y2} he lived in {C}. | Von {Y} bis {Y2} lebte er in {C}.
He worked there until {Y}. | Er hat dort bis {Y} gearbeitet.
The picture is from {Y}. | Das Bild ist aus dem Jahr {Y}.
{Y} was a good year. | {Y} war ein gutes Jahr.
Do you remember the summer of {Y}? | Erinnerst du dich an den Sommer {Y}?
The bus leaves at {T}. | Der Bus fährt um {T} Uhr ab.
The meeting begins at {T}. | Die Besprechung beginnt um {T} Uhr.
I got up at {T} this morning. | Ich bin heute Morgen um {T} Uhr aufgestanden.
Please come at {T}. | Bitte komm um {T} Uhr.
The shop closes at {T} today. | Das Geschäft schließt heute um {T} Uhr.
It is {T}. | Es ist {T} Uhr.
Call me between {T} and {T2}. | Ruf mich zwischen {T} und {T2} Uhr an.
The film starts at {T} and ends at {T2}. | Der Film beginnt um {T} Uhr und endet um {T2} Uhr.
{M} arrived at {T}. | {M} kam um {T} Uhr an.
It costs {P}. | Es kostet {P}.
This book costs {P}. | Dieses Buch kostet {P}.
I paid {P} for it. | Ich habe {P} dafür bezahlt.
The ticket was only {P}. | Die Karte hat nur {P} gekostet.
He earns {P} a month. | Er verdient {P} im Monat.
You owe me {P}. | Du schuldest mir {P}.
The rent is {P}. | Die Miete beträgt {P}.
{W} lent me {P}. | {W} hat mir {P} geliehen.
She found {P} on the street. | Sie hat {P} auf der Straße gefunden.
There were {N} people in the room. | Es waren {N} Leute im Zimmer.
The village has {N} inhabitants. | Das Dorf hat {N} Einwohner.
My grandfather is {N} years old. | Mein Großvater ist {N} Jahre alt.
There are {N} students at our school. | An unserer Schule gibt es {N} Schüler.
He has read {N} books. | Er hat {N} Bücher gelesen.
It is {N} kilometers from here to {C}. | Von hier bis {C} sind es {N} Kilometer.
I need {N} copies. | Ich brauche {N} Kopien.
Please turn to page {N}. | Schlagen Sie bitte Seite {N} auf.
The tower is {N} meters high. | Der Turm ist {N} Meter hoch.
About {N} people were injured. | Ungefähr {N} Menschen wurden verletzt.
She wrote {N} letters. | Sie hat {N} Briefe geschrieben.
The factory has {N} workers. | Die Fabrik hat {N} Arbeiter.
{N} plus {N2} is {N3}. | {N} plus {N2} ist {N3}.
The answer is {N}. | Die Antwort lautet {N}.
He ran {D} kilometers. | Er ist {D} Kilometer gelaufen.
The box weighs {D} kilos. | Die Kiste wiegt {D} Kilo.
Prices rose by {D} percent. | Die Preise stiegen um {D} Prozent.
The table is {D} meters long. | Der Tisch ist {D} Meter lang.
My room number is {O}. | Meine Zimmernummer ist {O}.
I live at number {O}. | Ich wohne in Nummer {O}.
We are in room {O}. | Wir sind in Zimmer {O}.
Take bus number {O}. | Nimm den Bus Nummer {O}.
Flight {K} is late. | Flug {K} hat Verspätung.
My phone number is {S}. | Meine Telefonnummer ist {S}.
Please call {S}. | Bitte rufen Sie {S} an.
His new number is {S}. | Seine neue Nummer ist {S}.
The code is {K}. | Der Code lautet {K}.
I forgot the password {K}. | Ich habe das Passwort {K} vergessen.
The model {K} is sold out. | Das Modell {K} ist ausverkauft.
Your order number is {K}. | Ihre Bestellnummer ist {K}.
You can find it at {U}. | Du findest es unter {U}.
Please visit {U}. | Bitte besuchen Sie {U}.
Have you seen {U}? | Hast du {U} gesehen?
For more information, see {U}. | Weitere Informationen gibt es unter {U}.
My e-mail address is {E}. | Meine E-Mail-Adresse ist {E}.
Please write to {E}. | Bitte schreiben Sie an {E}.
Send the file {F} to {E}. | Schick die Datei {F} an {E}.
Open the file {F}. | Öffne die Datei {F}.
I can't open {F}. | Ich kann {F} nicht öffnen.
I deleted {F} by mistake. | Ich habe {F} aus Versehen gelöscht.
My name is {M}. | Ich heiße {M}.
My name is {W} {L}. | Mein Name ist {W} {L}.
I am {M} {L}. | Ich bin {M} {L}.
This is my friend {W}. | Das ist meine Freundin {W}.
Have you met {M} {L}? | Kennst du {M} {L}?
Mr. {L} is not here. | Herr {L} ist nicht hier.
Mr. {L} called this morning. | Herr {L} hat heute Morgen angerufen.
Mrs. {L} is our teacher. | Frau {L} ist unsere Lehrerin.
Is Mrs. {L} at home? | Ist Frau {L} zu Hause?
Dr. {L} is a good doctor. | Dr. {L} ist ein guter Arzt.
I have an appointment with Dr. {L}. | Ich habe einen Termin bei Dr. {L}.
Professor {L} lives in {C}. | Professor {L} wohnt in {C}.
{M} and {W} are married. | {M} und {W} sind verheiratet.
{M} {L} is a famous writer. | {M} {L} ist ein berühmter Schriftsteller.
{W} {L} was born in {C} in {Y}. | {W} {L} wurde {Y} in {C} geboren.
I live in {C}. | Ich wohne in {C}.
I come from {C}. | Ich komme aus {C}.
We drove from {C} to {C2}. | Wir sind von {C} nach {C2} gefahren.
Have you ever been to {C}? | Bist du schon einmal in {C} gewesen?
The train to {C} is late. | Der Zug nach {C} hat Verspätung.
It is raining in {C}. | In {C} regnet es.
{C} is a beautiful place. | {C} ist ein schöner Ort.
She wants to study in {C}. | Sie möchte in {C} studieren.
He returned from {C} yesterday. | Er ist gestern aus {C} zurückgekommen.
When did you come back from {C}? | Wann bist du aus {C} zurückgekommen?
{W} is older than {M}. | {W} ist älter als {M}.
I saw {W} {L} in {C}. | Ich habe {W} {L} in {C} gesehen.
Ask {M} {L}. | Frag {M} {L}.
{M}, where are you? | {M}, wo bist du?
Dear {W}, | Liebe {W},
Dear Mr. {L}, | Sehr geehrter Herr {L},
Many greetings from {C}! | Viele Grüße aus {C}!
Hello, {W}! | Hallo, {W}!
{M} works for {L}. | {M} arbeitet bei {L}.
""".strip().split("\n")]
