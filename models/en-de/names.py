"""Names that augment.py puts into sentences: people, places that both languages spell alike, places that they do not.

None of them stands in keeping.py, which checks whether the model carries over names it has never met.
"""

MEN = """Adam Ahmed Albert Alan Alex Ali Andrew Anton Arthur Ben Bernd Bill Bob Brian Carl Carlos Chris Christian Colin
Dan David Dennis Dieter Dirk Eric Ernst Felix Frank Fritz Gary Georg Gerald Gerhard Greg Hamid Hans Harry Heinz Henrik
Henry Hugo Ivan Jack Jakob Jan Jason Jeff Jim Joe Jonas Jorge Josef Juan Karim Karl Kenji Kevin Klaus Kurt Lars Leo Leon
Luca Lukas Luke Manuel Marcel Mario Martin Matt Max Mehmet Mike Mohammed Nick Nils Oliver Oskar Otto Patrick Paul Pedro
Peter Phil Pierre Rainer Ralf Ricardo Rob Robert Roger Ron Sam Samuel Sascha Sean Sergei Simon Stefan Steve Sven Takeshi
Ted Theo Tim Timo Tobias Tony Udo Uwe Victor Viktor Walter Will Wolfgang Yusuf""".split()

WOMEN = """Aisha Alina Amanda Amy Andrea Angela Anja Anna Anne Antonia Astrid Barbara Beate Betty Birgit Carla Carmen
Carol Caroline Christa Clara Claudia Cynthia Dana Diana Dora Doris Elena Elisabeth Ella Emily Emma Erika Esther Eva
Fiona Frida Gabi Gisela Grace Hanna Heidi Helga Ilse Ines Ingrid Irene Jane Janet Jenny Jessica Jill Joan Judith Julia
Karin Kate Katrin Kerstin Kim Klara Lara Laura Lena Linda Lisa Lucy Luise Margaret Maria Marie Marion Martha Mei Mia
Monika Nadia Nancy Natalie Nicole Nina Nora Olga Pamela Paula Petra Rachel Regina Renate Rita Rosa Ruth Sabine Sally
Sandra Sara Silvia Sofia Sonja Sophie Stella Susan Svenja Tanja Teresa Tina Ute Vera Wendy Yuki Yvonne Zoe""".split()

SURNAMES = """Adams Allen Bach Baker Bauer Becker Bergmann Braun Brown Carter Clark Cohen Cooper Davis Dietrich Evans
Fernandez Fischer Fletcher Garcia Gonzalez Graf Green Gupta Haas Hahn Harris Hartmann Hoffmann Huber Ivanov Johnson Jones
Kaiser Keller Khan Kim King Klein Koch Kowalski Kumar Lang Larsen Lee Lehmann Lopez Ludwig Maier Martinez Mayer Meyer
Miller Moore Morgan Nakamura Nelson Nguyen Novak Olsen Patel Peters Petrov Popov Reed Richter Roberts Rossi Russo Sato
Schmidt Schneider Scholz Schulz Schwarz Scott Silva Simon Singh Smith Sommer Stein Suzuki Tanaka Taylor Thompson Turner
Vogel Wagner Walker Weber Weiss White Wilson Winter Wolf Wong Wood Wright Yamada Yilmaz Young Zimmermann""".split()

CITIES = """Aachen Amsterdam Atlanta Augsburg Austin Baltimore Barcelona Basel Berlin Bern Bielefeld Birmingham Bochum
Bonn Bremen Bristol Bristol Budapest Cambridge Chicago Dallas Delhi Denver Detroit Dortmund Dresden Dublin Duisburg
Dundee Erfurt Essen Frankfurt Freiburg Glasgow Graz Halle Hamburg Heidelberg Helsinki Houston Innsbruck Jakarta Jena
Karlsruhe Kassel Kiel Kyoto Lagos Leeds Leipzig Lima Linz Liverpool London Lyon Madrid Mainz Manchester Manila Mannheim
Melbourne Memphis Miami Montreal Mumbai Nagoya Nairobi Nashville Orlando Osaka Oslo Oxford Paris Perth Phoenix Portland
Porto Potsdam Regensburg Rostock Salzburg San Francisco Santiago Seattle Seoul Shanghai Stockholm Stuttgart Sydney Tampa
Tokyo Toronto Trier Tulsa Ulm Utrecht Vancouver Weimar Wiesbaden York""".replace("San Francisco", "San_Francisco").split()

# English, German.
EXONYMS = [pair.split("/") for pair in """Athens/Athen Bavaria/Bayern Belgrade/Belgrad Brunswick/Braunschweig
Brussels/Brüssel Bucharest/Bukarest Cairo/Kairo Cologne/Köln Copenhagen/Kopenhagen Dunkirk/Dünkirchen Florence/Florenz
Geneva/Genf Genoa/Genua Hanover/Hannover Havana/Havanna Jerusalem/Jerusalem Lisbon/Lissabon Lucerne/Luzern Milan/Mailand
Moscow/Moskau Munich/München Naples/Neapel Nice/Nizza Nuremberg/Nürnberg Prague/Prag Rome/Rom Saxony/Sachsen
Sicily/Sizilien Strasbourg/Straßburg Turin/Turin Venice/Venedig Vienna/Wien Warsaw/Warschau Zurich/Zürich
Austria/Österreich Australia/Australien Belgium/Belgien Brazil/Brasilien Canada/Kanada China/China Croatia/Kroatien
Denmark/Dänemark Egypt/Ägypten England/England Finland/Finnland France/Frankreich Germany/Deutschland
Greece/Griechenland Hungary/Ungarn India/Indien Ireland/Irland Italy/Italien Japan/Japan Korea/Korea Mexico/Mexiko
Morocco/Marokko Norway/Norwegen Poland/Polen Portugal/Portugal Russia/Russland Scotland/Schottland Spain/Spanien
Sweden/Schweden Tyrol/Tirol Wales/Wales Europe/Europa Africa/Afrika Asia/Asien America/Amerika""".split()]

# Of which made-up names consist; the empty ones leave a syllable open.
ONSETS = """b bl br c ch d dr f fl fr g gl gr h j k kl kr l m n p ph pr qu r s sch sh sl sm sn sp st str t th tr v w wh y z
""".split() + [""] * 3
VOWELS = "a e i o u a e i o u a e i o u a e i o u a e i o u aa ai au ea ee ei eu ia ie io oa oo ou ua y ä ö ü é á í".split()
CODAS = "b ck d f g k l ll lm m mp n nd ng nk nn nt p r rd rk rn rs rt s ss st t tt tz v x z".split() + [""] * 24
ENDINGS = "a e i o ov ova ić ski sen son man mann berg burg dorf feld ford ham heim hof ton ville wick stein er ier ini etti ez"
ENDINGS = ENDINGS.split() + [""] * 20
