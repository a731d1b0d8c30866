/** The sentences of the embedded composer in its languages. */
import type { Tone } from "./draftProvider.ts";

export interface Letter {
  subject(project: string): string;
  subjectAppointment(project: string): string;
  subjectOf: Record<"VISIT" | "OPEN_HOUSE" | "PROMOTION" | "FOLLOW_UP", (project: string) => string>;
  greeting(name: string, tone: Tone): string;
  thanks(project: string): string;
  reserved(unit: string): string;
  unit(unit: string, details: string[], available: boolean): string;
  someUnits(project: string): string;
  price(amount: string): string;
  bedrooms(n: number): string;
  baths(n: number): string;
  sqft(n: string): string;
  delivery(month: string): string;
  from(project: string, amount: string): string;
  appointment(when: string): string;
  at(place: string): string;
  lastVisit(day: string): string;
  openHouse(when: string): string;
  promotion(title: string, gives: string | undefined, until: string | undefined): string;
  office(address: string, byAppointment: boolean): string;
  website(link: string): string;
  ask(tone: Tone): string;
  askVisit: string;
  askMore: string;
  closing(tone: Tone): string;
}

const en: Letter = {
  subject: (project) => `Homes in ${project}`,
  subjectAppointment: (project) => `Your appointment at ${project}`,
  subjectOf: {
    VISIT: (project) => `A visit to ${project}`,
    OPEN_HOUSE: (project) => `Open house at ${project}`,
    PROMOTION: (project) => `A promotion at ${project}`,
    FOLLOW_UP: (project) => `Your interest in ${project}`,
  },
  askVisit: "When would a visit suit you? Just reply to this mail.",
  askMore: "Is there anything else that you would like to know? Just reply to this mail.",
  greeting: (name, tone) =>
    tone === "FORMAL" ? `Dear ${name},` : tone === "FRIENDLY" ? `Hi ${name},` : `Hello ${name},`,
  thanks: (project) => `Thank you for your interest in ${project}.`,
  reserved: (unit) => `Your reservation of unit ${unit} is with us.`,
  unit: (unit, details, available) =>
    `Unit ${unit}${available ? " is for sale" : " is not for sale now"}${details.length > 0 ? `: ${details.join(", ")}` : ""}.`,
  someUnits: (project) => `These homes in ${project} may be of interest to you:`,
  price: (amount) => amount,
  bedrooms: (n) => (n === 1 ? "1 bedroom" : `${n} bedrooms`),
  baths: (n) => (n === 1 ? "1 bath" : `${n} baths`),
  sqft: (n) => `${n} sq ft`,
  delivery: (month) => `expected to be handed over in ${month}`,
  from: (project, amount) => `Homes in ${project} that are for sale start at ${amount}.`,
  appointment: (when) => `We look forward to seeing you on ${when}.`,
  at: (place) => `Where to find us: ${place}.`,
  lastVisit: (day) => `It was good to talk with you on ${day}.`,
  openHouse: (when) => `Our next open house is on ${when}; you are welcome to come by.`,
  promotion: (title, gives, until) =>
    `There is a promotion at present: ${title}${gives ? ` (${gives})` : ""}${until ? `, until ${until}` : ""}.`,
  office: (address, byAppointment) =>
    `You find our sales office at ${address}${byAppointment ? "; please make an appointment first" : ""}.`,
  website: (link) => `More about the homes: ${link}`,
  ask: (tone) =>
    tone === "FRIENDLY"
      ? "What would you like to know? Just reply to this mail."
      : "If you have questions or would like to visit, please reply to this mail.",
  closing: (tone) =>
    tone === "FORMAL" ? "Yours sincerely," : tone === "FRIENDLY" ? "Warm regards," : "Kind regards,",
};

const fr: Letter = {
  subject: (project) => `Logements à ${project}`,
  subjectAppointment: (project) => `Votre rendez-vous à ${project}`,
  subjectOf: {
    VISIT: (project) => `Une visite à ${project}`,
    OPEN_HOUSE: (project) => `Visite libre à ${project}`,
    PROMOTION: (project) => `Une promotion à ${project}`,
    FOLLOW_UP: (project) => `Votre intérêt pour ${project}`,
  },
  askVisit: "Quand une visite vous conviendrait-elle ? Répondez simplement à ce message.",
  askMore: "Avez-vous d’autres questions ? Répondez simplement à ce message.",
  greeting: (name, tone) => (tone === "FRIENDLY" ? `Bonjour ${name} !` : `Bonjour ${name},`),
  thanks: (project) => `Merci de votre intérêt pour ${project}.`,
  reserved: (unit) => `Votre réservation de l’unité ${unit} est enregistrée.`,
  unit: (unit, details, available) =>
    `L’unité ${unit} ${available ? "est à vendre" : "n’est pas à vendre actuellement"}${details.length > 0 ? ` : ${details.join(", ")}` : ""}.`,
  someUnits: (project) => `Ces logements à ${project} pourraient vous intéresser :`,
  price: (amount) => amount,
  bedrooms: (n) => (n === 1 ? "1 chambre" : `${n} chambres`),
  baths: (n) => (n === 1 ? "1 salle de bain" : `${n} salles de bain`),
  sqft: (n) => `${n} pieds carrés`,
  delivery: (month) => `livraison prévue en ${month}`,
  from: (project, amount) => `Les logements à vendre à ${project} commencent à ${amount}.`,
  appointment: (when) => `Nous nous réjouissons de vous rencontrer le ${when}.`,
  at: (place) => `Lieu : ${place}.`,
  lastVisit: (day) => `Merci pour notre échange du ${day}.`,
  openHouse: (when) => `Notre prochaine visite libre a lieu le ${when} ; vous y êtes les bienvenus.`,
  promotion: (title, gives, until) =>
    `Une promotion est en cours : ${title}${gives ? ` (${gives})` : ""}${until ? `, jusqu’au ${until}` : ""}.`,
  office: (address, byAppointment) =>
    `Notre bureau des ventes se trouve ici : ${address}${byAppointment ? ", sur rendez-vous" : ""}.`,
  website: (link) => `En savoir plus : ${link}`,
  ask: () => "Pour toute question, ou pour une visite, répondez simplement à ce message.",
  closing: (tone) => (tone === "FORMAL" ? "Veuillez agréer nos salutations distinguées," : "Cordialement,"),
};

const es: Letter = {
  subject: (project) => `Viviendas en ${project}`,
  subjectAppointment: (project) => `Su cita en ${project}`,
  subjectOf: {
    VISIT: (project) => `Una visita a ${project}`,
    OPEN_HOUSE: (project) => `Puertas abiertas en ${project}`,
    PROMOTION: (project) => `Una promoción en ${project}`,
    FOLLOW_UP: (project) => `Su interés en ${project}`,
  },
  askVisit: "¿Cuándo le vendría bien una visita? Responda a este mensaje.",
  askMore: "¿Tiene alguna otra pregunta? Responda a este mensaje.",
  greeting: (name, tone) => (tone === "FORMAL" ? `Saludos cordiales, ${name}:` : `Hola, ${name}:`),
  thanks: (project) => `Gracias por su interés en ${project}.`,
  reserved: (unit) => `Hemos recibido su reserva de la unidad ${unit}.`,
  unit: (unit, details, available) =>
    `La unidad ${unit} ${available ? "está en venta" : "no está en venta ahora"}${details.length > 0 ? `: ${details.join(", ")}` : ""}.`,
  someUnits: (project) => `Estas viviendas en ${project} pueden interesarle:`,
  price: (amount) => amount,
  bedrooms: (n) => (n === 1 ? "1 dormitorio" : `${n} dormitorios`),
  baths: (n) => (n === 1 ? "1 baño" : `${n} baños`),
  sqft: (n) => `${n} pies cuadrados`,
  delivery: (month) => `entrega prevista en ${month}`,
  from: (project, amount) => `Las viviendas en venta en ${project} empiezan en ${amount}.`,
  appointment: (when) => `Le esperamos el ${when}.`,
  at: (place) => `Lugar: ${place}.`,
  lastVisit: (day) => `Gracias por nuestra conversación del ${day}.`,
  openHouse: (when) => `Nuestra próxima jornada de puertas abiertas es el ${when}; será un placer recibirle.`,
  promotion: (title, gives, until) =>
    `Hay una promoción en curso: ${title}${gives ? ` (${gives})` : ""}${until ? `, hasta el ${until}` : ""}.`,
  office: (address, byAppointment) =>
    `Nuestra oficina de ventas está aquí: ${address}${byAppointment ? ", con cita previa" : ""}.`,
  website: (link) => `Más información: ${link}`,
  ask: () => "Si tiene preguntas o desea una visita, responda a este mensaje.",
  closing: (tone) => (tone === "FORMAL" ? "Atentamente," : "Un cordial saludo,"),
};

const de: Letter = {
  subject: (project) => `Wohnungen in ${project}`,
  subjectAppointment: (project) => `Ihr Termin in ${project}`,
  subjectOf: {
    VISIT: (project) => `Ein Besuch in ${project}`,
    OPEN_HOUSE: (project) => `Tag der offenen Tür in ${project}`,
    PROMOTION: (project) => `Eine Aktion in ${project}`,
    FOLLOW_UP: (project) => `Ihr Interesse an ${project}`,
  },
  askVisit: "Wann passt Ihnen eine Besichtigung? Antworten Sie einfach auf diese Nachricht.",
  askMore: "Haben Sie weitere Fragen? Antworten Sie einfach auf diese Nachricht.",
  greeting: (name) => `Guten Tag ${name},`,
  thanks: (project) => `vielen Dank für Ihr Interesse an ${project}.`,
  reserved: (unit) => `Ihre Reservierung der Wohnung ${unit} liegt uns vor.`,
  unit: (unit, details, available) =>
    `Wohnung ${unit} ${available ? "steht zum Verkauf" : "steht zurzeit nicht zum Verkauf"}${details.length > 0 ? `: ${details.join(", ")}` : ""}.`,
  someUnits: (project) => `Diese Wohnungen in ${project} könnten Sie interessieren:`,
  price: (amount) => amount,
  bedrooms: (n) => `${n} Schlafzimmer`,
  baths: (n) => (n === 1 ? "1 Badezimmer" : `${n} Badezimmer`),
  sqft: (n) => `${n} Quadratfuß`,
  delivery: (month) => `Übergabe voraussichtlich im ${month}`,
  from: (project, amount) => `Die Wohnungen, die in ${project} zum Verkauf stehen, beginnen bei ${amount}.`,
  appointment: (when) => `Wir freuen uns auf Ihren Besuch am ${when}.`,
  at: (place) => `Ort: ${place}.`,
  lastVisit: (day) => `Danke für das Gespräch am ${day}.`,
  openHouse: (when) => `Unser nächster Tag der offenen Tür ist am ${when}; Sie sind herzlich eingeladen.`,
  promotion: (title, gives, until) =>
    `Zurzeit läuft eine Aktion: ${title}${gives ? ` (${gives})` : ""}${until ? `, bis ${until}` : ""}.`,
  office: (address, byAppointment) =>
    `Unser Verkaufsbüro finden Sie hier: ${address}${byAppointment ? ", nach Vereinbarung" : ""}.`,
  website: (link) => `Mehr darüber: ${link}`,
  ask: () => "Bei Fragen, oder für eine Besichtigung, antworten Sie einfach auf diese Nachricht.",
  closing: () => "Mit freundlichen Grüßen",
};

export const letters: Record<string, Letter> = { en, fr, es, de };
