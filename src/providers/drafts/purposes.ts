/** The purpose of a mail, as far as the embedded composer recognizes it in the few words of the request. */

export type Purpose = "OPEN_HOUSE" | "APPOINTMENT" | "PROMOTION" | "FOLLOW_UP" | "HOMES" | "VISIT";

// In this order: an invitation to an open house is more specific than one to visit.
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

/** @returns undefined if the words match no purpose */
export function purposeOf(text: string | null): Purpose | undefined {
  return words.find(([, form]) => form.test(text ?? ""))?.[0];
}
