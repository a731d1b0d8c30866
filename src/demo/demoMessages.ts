import type { Stage } from "./stage.ts";

interface Message {
  project: string;
  name: string;
  email: string;
  text: string;
  phone?: string;
  follow?: boolean;
}

/** Messages of the contact forms: two are from existing leads, the others create leads. */
const rows: Message[] = [
  {
    project: "gardens",
    name: "Grace Kim",
    email: "grace.kim@mail.example",
    text: "Are there homes with two bedrooms to the garden left, and what do the monthly costs come to?",
  },
  {
    project: "gardens",
    name: "Omar Farouk",
    email: "omar.farouk@mail.example",
    text: "We would like to come by on Saturday with our parents. Is eleven o'clock all right?",
  },
  {
    project: "gardens",
    name: "Yuki Sato",
    email: "yuki.sato@mail.example",
    phone: "+1 647 555 0142",
    text: "I am moving to Toronto in spring and need one bedroom with a den. Is a virtual visit possible?",
    follow: true,
  },
  {
    project: "towns",
    name: "Elena Petrova",
    email: "elena.petrova@mail.example",
    text: "Please tell me as soon as the price list is out.",
    follow: true,
  },
];

/** Visitors without an account send messages to a sales office. */
export async function messages(stage: Stage): Promise<void> {
  for (const { project, name, email, text, phone, follow } of rows)
    await stage.as(
      null,
      `select m.id from app_public.contact_project(project_id => $1, name => $2, email => $3, text => $4, phone => $5, follow => $6) m`,
      [stage.id(`project ${project}`), name, email, text, phone ?? null, follow ?? null],
    );
}
