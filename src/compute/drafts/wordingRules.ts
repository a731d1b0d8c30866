/** Words that a draft must not contain, whatever the facts are. */

/**
 * Wording that fair-housing law forbids in advertising, or that its guidance regards as steering: for whom a home or neighbourhood is
 * suited or meant, or who lives there. English, French, Spanish and German.
 */
const fairHousing: RegExp[] = [
  /\b(?:perfect|ideal|great|suited?|suitable|made|meant|best|right|good)\s+(?:home\s+|place\s+|choice\s+|fit\s+)?for\s+(?:an?\s+|the\s+|your\s+)?(?:\w+\s+){0,2}(?:famil\w+|couples?|singles?|bachelors?|children|kids|retirees|seniors|empty[- ]nesters|newlyweds|professionals?|students?|christians?|jews|muslims|women|men|adults)\b/,
  /\b(?:adults?|singles|couples|christians?|whites?|english[- ]speakers?)[- ]only\b/,
  /\bno\s+(?:kids|children|families|immigrants|foreigners|wheelchairs?|section\s*8|service animals)\b/,
  /\b(?:family|kid|child)[- ]?(?:friendly|oriented)\b/,
  /\b(?:empty[- ]nesters?|bachelor pad|mother[- ]in[- ]law|able[- ]bodied|handicapped|crippled|mentally ill|man of the house)\b/,
  /\b(?:safe|low[- ]crime|crime[- ]free|exclusive|integrated|traditional|ethnic|(?:all[- ])?white|black|hispanic|latino|asian|jewish|christian|catholic|muslim|gay)\s+(?:and\s+\w+\s+)?(?:neighbou?rhood|community|area|street|residents?|families|neighbou?rs|parish|schools?)\b/,
  /\b(?:neighbou?rhood|area|street|community|district)\s+is\s+(?:\w+\s+){0,2}(?:safe|exclusive|integrated)\b|\b(?:(?:mostly|mainly|only) (?:english|french|spanish)[- ]speaking|(?:english|french|spanish)[- ]speaking (?:neighbou?r\w*|residents?|community|area|building|famil\w+))\b/,
  /\b(?:young|younger|older|elderly|retired|married|childless)\s+(?:professionals?|people|couples?|famil\w+|adults?|residents?|neighbou?rs?)\b/,
  /\bsuits?\s+(?:\w+\s+){0,2}(?:people|famil\w+|couples?|singles?|seniors|retirees|students?|children|women|men)\b/,
  /\b(?:near|close to|walking distance (?:to|of)|steps from)\s+(?:an?\s+|the\s+|\w+\s+)?(?:church|synagogue|mosque|temple|parish)(?:es|s)?\b/,
  /\b(?:idéale?|parfaite?)s?\s+pour\s+(?:\p{L}+\s+){0,2}(?:famille|couple|célibataire|retraité|enfant|étudiant)s?/u,
  /\b(?:ideal|perfect[oa])\s+para\s+(?:\p{L}+\s+){0,2}(?:familia|pareja|solter|jubilad|niñ|estudiante)/u,
  /\b(?:ideal|perfekt|bestens geeignet)\s+für\s+(?:\p{L}+\s+){0,2}(?:familie|paare?|singles?|rentner|kinder|senioren|studenten)/u,
  /\b(?:sans|sin|ohne|keine)\s+(?:enfants?|niños|kinder)\b/u,
  /(?:quartier|voisinage|barrio|vecindario|gegend|viertel)\s+(?:très |muy |sehr )?(?:sûre?|segur[oa]|tranquille et sûr|exclusi[fv]\p{L}*)|sichere[nrs]?\s+(?:gegend|viertel|nachbarschaft)|\bbarrio seguro\b/u,
];

/** Characteristics that the law protects; they may only be named to say that everybody is welcome. */
const traits =
  /\b(?:race|racial|skin colou?r|religion|religious|national origin|nationality|ethnicity|sexual orientation|familial status)\b/;
const welcome =
  /\b(?:regardless of|irrespective of|without regard to|do(?:es)? not (?:ask|discriminate)|equal housing opportunity)\b/;

/** Promises that no record supports. A denial of a guarantee is allowed. */
const promises: RegExp[] = [
  /(?<!\b(?:no|not|cannot|can't|not an?|nothing (?:here )?is(?: an?)?|keine?|nicht|aucune|ninguna)\s)(?:\bguarant\w+|\bgarant\p{L}+)/u,
  /\b(?:will|is sure to|are sure to|bound to)\s+(?:\w+\s+)?(?:appreciate|increase in value|go up in (?:value|price)|double)\b/,
  /\brisk[- ]free\b|\bno risk\b|\bcan(?:no|')t lose\b|\bcan(?:not|'t) go wrong\b|\bout of the question\b/,
  /\b(?:i|we) (?:can |hereby )?promise\b|\b(?:my|our) word\b|\byou have my word\b/,
  /\b(?:certainly|surely|definitely) (?:get|be|receive|do something)\b|\b(?:already |as good as |pre-?)approved\b|\bwill be approved\b/,
  /\b(?:price|rate|fee)s? (?:stays?|remains?|will (?:stay|remain|not|never)|is (?:fixed|locked))\b/,
  /\b(?:better|lower|special|best) (?:price|deal|rate)s?\b|\bsomething about the price\b|\byou save\b(?! the date)/,
  /\b(?:hold|keep|set aside|reserve|block)\s+(?:it|this|that|(?:the|this|that|a|your|one)\s+(?:unit|home|suite|lot|apartment|residence|condo)|(?:unit|suite|lot)\s+\S+)\s+(?:\w+\s+){0,2}for you\b/,
  /\b(?:fully |completely )?refundable\b|\bmoney back\b|\bno (?:deposit|fees?|strings)\b|\bincluded in the price\b|\bthrow in\b|\b(?:pay|cover)s? (?:all )?(?:of )?your\b/,
  /\baucun risque\b|\bsans risque\b|\bje (?:vous )?promets\b|\brembours\p{L}+|\bprendra de la valeur\b/u,
  /\bversprech\p{L}+|\brisikolos\b|\bohne risiko\b|\bim wert steigen\b|\bwertsteigerung\b|\bkaution(?:sfrei)? zurück\b/u,
  /\bsin riesgos?\b|\ble prometo\b|\bsubirá de valor\b|\bserá aprobad[oa]\b|\breembols\p{L}+/u,
];

/** Pressure to decide quickly. Saying that there is no hurry is allowed. */
const pressure: RegExp[] = [
  /\blast chance\b|\bonce[- ]in[- ]a[- ]lifetime\b|\blimited time\b|\bbefore it(?:'s| is) too late\b|\bdon't (?:miss|wait|hesitate too long)\b|\bdo not (?:miss|wait)\b/,
  /(?<!\b(?:no|not|need to|don't)\s)\bhurry\b|\bact (?:now|fast|quickly|today)\b|\bbe (?:quick|fast)\b|\b(?:going|selling|sell|go) (?:very )?(?:fast|quickly)\b|\bsell(?:ing)? out\b|\bwon't last\b|\bwill not last\b|\bwill be gone\b/,
  /\b(?:only|just) (?:one|two|three|four|five|a few|a handful|\d+)\s+(?:\w+\s+){0,3}(?:left|remain\w*)\b|\b(?:almost|nearly|soon) (?:sold out|gone)\b|\beverybody wants\b|\beveryone wants\b/,
  /\b(?:other|more|many|several|two|three|four|five|another) (?:\w+ )?(?:buyers?|people|parties|party|famil(?:y|ies)|couples?|clients?|leads?) (?:is|are|has|have|want|wants|also)\b/,
  /\b(?:prices?|rates?) (?:(?:are|is) going to |will (?:soon )?|are about to )?(?:go|goes|going|rise|rises|increase|increases|climb) ?(?:up)?\b|\bnever be (?:this|so|as) (?:low|good|cheap)\b/,
  /(?<!\b(?:not|don't|never)\s)\b(?:must|need to|have to) (?:decide|sign|reserve|buy|act|commit)\b|\bif you (?:do not|don't) (?:\w+ ){0,2}(?:today|now|this week|soon)\b|\b(?:valid|only) today\b|\btoday only\b/,
  /\bdernière (?:chance|occasion)\b|\bdépêchez\b|\bne tardez\b|\bil ne reste (?:plus )?qu|\bavant qu'il ne soit trop tard\b|\bprix (?:va |vont )?augment\p{L}+/u,
  /\bletzte (?:chance|gelegenheit)\b|\bgreifen sie\b|\bbeeilen\b|\bnur noch (?:eine?|zwei|drei|wenige|\d+)\b|\bbald (?:ist (?:alles )?)?(?:weg|vergriffen|ausverkauft)\b|\bsolange (?:der )?vorrat\b|\bpreise? steig\p{L}+/u,
  /\búltimas? (?:oportunidad|unidad)\p{L}*|\bcompre ya\b|\bdese prisa\b|\bno se lo pierda\b|\bsolo quedan?\b|\bantes de que sea (?:demasiado )?tarde\b|\bmás caro\b|\bprecios? (?:suben?|subirán?)\b/u,
];

/** Legal, financial and tax advice. Saying that the mail gives no such advice is allowed. */
const advice: RegExp[] = [
  /\b(?:do not|don't|no|won't|never)\s+(?:need|have to (?:read|hire|get|involve)|need to (?:read|hire|get))\s+(?:an?\s+|the\s+|your\s+)?(?:lawyers?|attorneys?|notary|solicitors?|inspections?|inspectors?|agents?|realtors?|contract|small print|fine print)\b|\b(?:small|fine) print\b/,
  /\blegally\b|\b(?:can|may) (?:always )?cancel (?:it )?(?:at any time|any time|whenever|for free)\b|\bskip the inspection\b|\bloophole\b|\bbankruptcy\b/,
  /\b(?:deduct|write off|tax[- ]free|tax deductible)\b|\b(?:do not|don't|won't|will not) (?:have to )?pay (?:any )?(?:\w+ ){0,3}tax(?:es)?\b/,
  /\b(?:interest|mortgage|fixed|variable) rates? (?:are|is|will|should|can only)\b|\b(?:variable|fixed|adjustable)[- ]rate mortgage\b|\bmortgage payments?\b|\byour financing is\b/,
  /\b(?:good|great|safe|better|solid|best|smart|excellent|secure|sound) (?:investment|asset|return)\b|\bstock market\b|\bmake (?:a )?(?:profit|money)\b|\brental (?:income|yield)\b|\breturn on investment\b/,
  /\bpas besoin d(?:e |'|'un )(?:avocat|notaire|inspection)\b|\bdéductibles?\b|\b(?:bon|sûr|excellent) (?:placement|investissement)\b/u,
  /\bkeine?n? (?:anwalt|notar|gutachter)\b|\bsteuerlich\b|\babsetz\p{L}+|\bsichere (?:geld)?anlage\b|\brendite\b/u,
  /\bno necesita (?:un )?(?:abogado|notario)\b|\bdeducir\b|\binversión (?:segura|excelente)\b/u,
];

/** Other people, who must not be used as an argument. */
const others: RegExp[] = [
  /\b(?:buyer|owner|purchaser|tenant|seller|resident|neighbou?r)s? (?:of|in|from|at) (?:unit |suite |lot |number |no\. )?[a-z]{0,3}-?\d/,
  /\byour (?:future )?neighbou?rs? (?:\w+ ){0,3}(?:paid|pays?|is|has|bought|earns?)\b|\banother (?:couple|buyer|family|party|person|client)(?:,| (?:is|has|wants?|offer\w*|also|made|paid)\b)/,
  /\bdivorc\w*|\bpregnan\w*|\bdiagnos\w*|\billness\b|\bbecause of (?:her|his|their) (?:health|debts?|job|age)\b/,
  /(?<!\p{L})(?:enceinte|divorcé\p{L}*|schwanger\p{L}*|geschieden\p{L}*|scheidung|embarazada|divorciad\p{L}*)(?!\p{L})/u,
];

/** Words for a price below the list price: a promotion must be among the facts. Saying that there is none is allowed. */
export const discountWords =
  /(?<!\p{L})(?!(?<=\bno )discounts?(?=\s*(?:[.;!]|at the moment|at present|right now|currently)))(?:discount\w*|rebates?|price (?:cut|drop|reduction)s?|incentives?|remises?|rabais|descuentos?|rebajas?|rabatt\w*|(?:preis)?nachl[aä]ss\w*)(?!\p{L})/gu;

/** Words for gifts: a promotion must support them. */
export const giftWords =
  /(?<!\p{L})(?:cash\s?back|half[- ](?:price|off)|free of charge|for free|free (?:upgrades?|parking|appliances?|storage|furniture)|waive[ds]?|gratuit\p{L}*|gratis|kostenlos\p{L}*|geschenkt)(?!\p{L})/gu;

/** The subject of a claim is something that people pay for. */
export const commercialTerms =
  /(?<!\p{L})(?:pric(?:e|es|ing)|deposits?|fees?|costs?|bonus(?:es)?|upgrades?|cash|credits?|rates?|mortgages?|loans?|lend\w*|financ\w+|tax(?:es)?|invest\w*|worth|values?|money|profit\w*|savings?|cheap\w*|bargains?|market|demand|contracts?|sign(?! (?:up|in))(?:ed|ing)?|laws?|legal\w*|clauses?|cancel\w*|insur\w+|construction|complet(?:ed?|es|ion)|finish(?:ed|es)?|warrant\w+|on us|(?:buy|take)\s+(?:\p{L}+\s+){1,3}back|resale|rent(?:s|al|ed)?|prix|acomptes?|frais|hypoth\p{L}+|impôts?|contrats?|chantier|travaux|preise?|anzahlung\p{L}*|gebühr\p{L}*|kosten|hypothek\p{L}*|kredit\p{L}*|zins\p{L}*|steuern?|vertr[aä]g\p{L}*|wert|bauarbeiten|precios?|depósitos?|gastos|hipotecas?|impuestos?|contratos?|obras)(?!\p{L})/giu;
/** A sentence that refers to somebody who knows, or to possible questions, or that denies that something exists. */
export const referral =
  /(?<!\p{L})(?:ask(?:ing)?|questions?|tell (?:me|us)|let (?:me|us) know|send you|explain|find out|discuss|talk (?:about|through|with you)|your (?:own )?(?:bank|lender|lawyer|advis[eo]r|accountant|notary|attorney|budget)|no (?:discounts?|legal)|nothing is|fragen?|frage|ihre bank|ihr anwalt|questions|votre (?:banque|notaire)|preguntas?|su banco)(?!\p{L})/iu;
/** Courtesy phrases. */
export const courtesy =
  /(?<!\p{L})(?:thanks?|welcome|please|hope|glad|happy|delighted|pleasure|looking forward|look forward|regards|sincerely|reply|contact|feel free|let me know|tell me|help|questions?|répon\p{L}+|antwort\p{L}*|fragen?|preguntas?|respond\p{L}*|merci|bienvenue|hésitez|cordialement|salutations|volontiers|plaisir|danke|dank|freue[nt]?|gerne?|bitte|grüßen?|hochachtung\p{L}*|melden|gracias|saludos|atentamente|encantad[oa]|disposición|gusto)(?!\p{L})/iu;
/** A person by title and name. */
export const titledName =
  /(?<!\p{L})(?:Mr|Mrs|Ms|Miss|Dr|Herrn?|Frau|Monsieur|Madame|Mme|Señora?|Sra?)\.?\s+\p{Lu}\p{L}+/gu;
export const greeting =
  /^\s*(?:dear|hello|hi|good (?:morning|afternoon|evening)|guten (?:tag|morgen)|sehr geehrte[rn]?|liebe[r]?|hallo|bonjour|chère?s?|cher|hola|buenos días|estimad[oa])(?!\p{L})/iu;

const rules: [string, RegExp[]][] = [
  ["Fair-housing wording", fairHousing],
  ["A promise that nothing backs", promises],
  ["Pressure", pressure],
  ["Advice on law, tax or money", advice],
  ["About other people", others],
];

/** Forbidden parts of a text, as sentences. */
export function refusedWording(text: string): string[] {
  const lower = text.toLowerCase().replace(/[‘’]/g, "'");
  const found = rules.flatMap(([what, patterns]) => {
    const words = patterns.map((pattern) => pattern.exec(lower)?.[0]).find((match) => match !== undefined);
    return words === undefined ? [] : [`${what}: “${words.trim()}”.`];
  });
  for (const sentence of lower.split(/(?<=[.!?])\s+|\n/)) {
    const trait = traits.exec(sentence)?.[0];
    if (trait !== undefined && !welcome.test(sentence)) found.push(`Fair-housing wording: “${trait}”.`);
  }
  return found;
}

/** A question about a time to talk or to meet. */
export const meetingQuestion =
  /\b(?:suits?|works? for|are you (?:free|available)|could we|can we|shall we|may i|do you have (?:time|a moment)|how about|what about|be convenient|call you|passt|hätten sie|haben sie|seriez-vous|auriez-vous|avez-vous|le (?:vendría|viene)|podríamos|puede)(?!\p{L})/iu;
/** A question about wishes. */
export const wishQuestion =
  /\b(?:are you looking|would you (?:like|rather|prefer)|do you (?:need|want|prefer)|you (?:had|have) in mind|suchen sie|möchten sie|cherchez-vous|préférez-vous|busca|prefiere)(?!\p{L})/iu;
/** Refers to existing homes or to the seller: such a question may state a fact. */
export const aboutOurHomes =
  /\b(?:our|ours|we|it|this|these|those|units?|suites?|lots?|unsere?\p{L}*|wir|notre|nos|nous|nuestr\p{L}*|einheit|wohnung|unité|unidad)(?!\p{L})|\d{3}/iu;
/** Subjects that state a fact even within a question. */
export const factualSubjects =
  /open house|offer|price|promotion|deadline|ready|mov(?:e|ing)|hand(?:ed)? over|keys|deliver|sold|\bends?\b|begins?|starts?|clos(?:e|ing)|sign|decide|pay|deposit|remind|confirm|agreed|appointment|visite libre|offre|prix|offenen? tür|preis|angebot|precio|oferta|puertas abiertas/iu;
export const conversation =
  /\b(?:call|chat|talk|conversation|visit|tour|meeting|appel|entretien|visite|gespräch|anruf|besichtigung|llamada|visita)\b/iu;
export const travel =
  /\b(?:walk|drive|ride|commute|station|bus|train|school|beach|downtown|airport|from|to the|away|fahrt|fuß|entfernt|à pied|distancia|andando)\b/iu;
/** The month in which a home is ready must be one of a fact. */
export const handover =
  /\b(?:mov(?:e|ing) in|(?<!you )(?<!you are )ready(?! to)|finished|complet(?:e|ed|ion)|hand(?:ed|ing)? over|handover|keys|bezugsfertig|einziehen|übergabe|schlüssel|emménag\p{L}*|livraison|remise des clés|mudarse|entrega|llaves)(?!\p{L})/iu;
export const relativeTime =
  /\b(?:next|this|coming) (?:week|month|year|spring|summer|fall|autumn|winter)\b|\bin (?:an?|one|two|three|four|six|\d+|a few|some) (?:days?|weeks?|months?|years?)\b|\b(?:by|before|in|around) (?:christmas|easter|new year|spring|summer|fall|autumn|winter)\b|nächste\p{L}* (?:woche|monat|jahr)|\bin \p{L}+ (?:wochen|monaten)|le mois prochain|\bdans \p{L}+ (?:semaines|mois)|el (?:mes que viene|próximo mes)|\ben \p{L}+ (?:semanas|meses)/iu;

export const keptForYou = /\b(?:is|are|stays?|remains?) (?:\w+ )?(?:reserved|held|kept) for you\b/i;
export const forSale =
  /\b(?:available|for sale|still (?:open|free)|disponibles?|à vendre|en venta|verfügbar|zu verkaufen|zu haben)(?!\p{L})/iu;
export const denial =
  /\b(?:not?|no longer|isn't|aren't|n['’]\p{L}+|pas|plus|ya no|nicht|kein\p{L}*)(?!\p{L})/iu;
