-- Enumerations of generated drafts.

select app_private.describe_enum('generation_kind', 'Kind of text that the drafting service generates.', array[
  ['LEAD_EMAIL', 'A message to a lead, with a subject line.'],
  ['LEAD_SMS', 'A text message to a lead.'],
  ['CALL_SUMMARY', 'A short summary of a phone call.'],
  ['LISTING_TEXT', 'Description of a unit or project for a listing.']
]);

select app_private.describe_enum('generation_status', 'Outcome of a generated draft.', array[
  ['PENDING', 'Being generated.'],
  ['COMPLETED', 'Generated; facts support every statement.'],
  ['BLOCKED', 'Withheld: the text violates a rule, or no fact supports one of its statements; see `warnings`.'],
  ['FAILED', 'The provider returned no text; see `error`.'],
  ['ACCEPTED', 'Approved by a user, who takes responsibility for the text.'],
  ['DISCARDED', 'Rejected by a user.']
]);

select app_private.describe_enum('generation_tone', 'Style of a generated draft.', array[
  ['NEUTRAL', 'Plain and factual.'],
  ['FRIENDLY', 'Warm and personal.'],
  ['FORMAL', 'Polite and impersonal.'],
  ['CONCISE', 'As short as possible.']
]);
