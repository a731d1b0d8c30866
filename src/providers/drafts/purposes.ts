/** What a mail is for, as far as the embedded composer understands the few words of a purpose. */

export type Purpose = "OPEN_HOUSE" | "APPOINTMENT" | "PROMOTION" | "FOLLOW_UP" | "HOMES" | "VISIT";

// In this order: an invitation to the open house is more than one to visit.
const words: readonly [Purpose, RegExp][] = [
  ["OPEN_HOUSE", /open[ -]?house|portes? ouvertes?|visite libre|puertas abiertas|offenen tür/iu],
  [
    "APPOINTMENT",
    /remind|confirm|rappel|recordatorio|recordar|erinner|bestätig|\b(?:their|the|next) (?:appointment|viewing)/iu,
  ],
  ["PROMOTION", /promo|incentive|special offer|discount|credit|rabais|oferta|descuento|aktion|angebot/iu],
  [
    "FOLLOW_UP",
    /follow(?:ing)?[ -]?up|check(?:ing)?[ -]?in|thank|after (?:the|their) (?:visit|tour|call)|relance|suivi|remerci|seguimiento|gracias|nachfass|danke?n?\b/iu,
  ],
  [
    "HOMES",
    /recommend|suggest|match|availab|price list|(?:which|new|our|suitable|these|some) (?:homes?|units?)|\b(?:homes?|units?|options|prices?)\b|logements?|disponib|viviendas?|wohnungen|verfügbar|preise/iu,
  ],
  [
    "VISIT",
    /invit|visit|viewing|tour\b|show(?:ing)?\b|come by|appointment|rendez-vous|cita\b|termin|besichtig|einlad/iu,
  ],
];

/** @returns undefined for words that say none of them */
export function purposeOf(text: string | null): Purpose | undefined {
  return words.find(([, form]) => form.test(text ?? ""))?.[0];
}
