/** Words that a draft must not have, whatever the facts are. */

/**
 * Wording that fair-housing law forbids in advertising, or that its guidance counts as steering: who a home or neighbourhood suits, is
 * meant for, or is inhabited by. English, French, Spanish and German.
 */
const fairHousing: RegExp[] = [
  /\b(?:perfect|ideal|great|suited?|suitable|made|meant|best|right|good)\s+(?:home\s+|place\s+|choice\s+|fit\s+)?for\s+(?:an?\s+|the\s+|your\s+)?(?:\w+\s+){0,2}(?:famil\w+|couples?|singles?|bachelors?|children|kids|retirees|seniors|empty[- ]nesters|newlyweds|professionals?|students?|christians?|jews|muslims|women|men|adults)\b/,
  /\b(?:adults?|singles|couples|christians?|whites?|english[- ]speakers?)[- ]only\b/,
  /\bno\s+(?:kids|children|families|immigrants|foreigners|wheelchairs?|section\s*8|service animals)\b/,
  /\b(?:family|kid|child)[- ]?(?:friendly|oriented)\b/,
  /\b(?:empty[- ]nesters?|bachelor pad|mother[- ]in[- ]law|able[- ]bodied|handicapped|crippled|mentally ill|man of the house)\b/,
  /\b(?:safe|low[- ]crime|crime[- ]free|exclusive|integrated|traditional|ethnic|(?:all[- ])?white|black|hispanic|latino|asian|jewish|christian|catholic|muslim|gay)\s+(?:and\s+\w+\s+)?(?:neighbou?rhood|community|area|street|residents?|families|neighbou?rs|parish|schools?)\b/,
  /\b(?:near|close to|walking distance (?:to|of)|steps from)\s+(?:an?\s+|the\s+|\w+\s+)?(?:church|synagogue|mosque|temple|parish)(?:es|s)?\b/,
  /\b(?:race|racial|skin colou?r|religion|religious|national origin|nationality|ethnicity|sexual orientation|familial status)\b/,
  /\b(?:idéale?|parfaite?)s?\s+pour\s+(?:\p{L}+\s+){0,2}(?:famille|couple|célibataire|retraité|enfant|étudiant)s?/u,
  /\b(?:ideal|perfect[oa])\s+para\s+(?:\p{L}+\s+){0,2}(?:familia|pareja|solter|jubilad|niñ|estudiante)/u,
  /\b(?:ideal|perfekt|bestens geeignet)\s+für\s+(?:\p{L}+\s+){0,2}(?:familie|paare?|singles?|rentner|kinder|senioren|studenten)/u,
  /\b(?:sans|sin|ohne|keine)\s+(?:enfants?|niños|kinder)\b/u,
  /(?:quartier|voisinage|barrio|vecindario|gegend|viertel)\s+(?:très |muy |sehr )?(?:sûre?|segur[oa]|tranquille et sûr|exclusi[fv]\p{L}*)|sichere[nrs]?\s+(?:gegend|viertel|nachbarschaft)|\bbarrio seguro\b/u,
];

/** Promises that no record backs. */
const promises: RegExp[] = [
  /\bguarant\w+|\bgarant\p{L}+/u,
  /\b(?:will|is sure to|are sure to|bound to)\s+(?:\w+\s+)?(?:appreciate|increase in value|go up in (?:value|price)|double)\b/,
  /\brisk[- ]free\b|\bcan(?:no|')t lose\b/,
];

/** Words of a price that is lower than listed: a promotion has to be among the facts. */
export const reductions =
  /(?<!\p{L})(?:discount\w*|rebates?|price (?:cut|drop|reduction)s?|incentives?|remises?|rabais|descuentos?|rebajas?|rabatt\w*|(?:preis)?nachl[aä]ss\w*)(?!\p{L})/gu;

/** Words of something given away: a promotion has to say so. */
export const gifts =
  /(?<!\p{L})(?:cash\s?back|half[- ](?:price|off)|free of charge|for free|free (?:upgrades?|parking|appliances?|storage|furniture)|waive[ds]?|gratuit\p{L}*|gratis|kostenlos\p{L}*|geschenkt)(?!\p{L})/gu;

/** What of a text must not be there, as sentences. */
export function refusedWording(text: string): string[] {
  const lower = text.toLowerCase();
  const found = (list: RegExp[]) =>
    list.map((pattern) => pattern.exec(lower)?.[0]).filter((match) => match !== undefined);
  return [
    ...found(fairHousing).map((words) => `Fair-housing wording: “${words}”.`),
    ...found(promises).map((words) => `A promise that nothing backs: “${words}”.`),
  ];
}
