-- Enumerations of search.

select app_private.describe_enum('search_result_type', 'Kind of record found by `search`.', array[
  ['PROJECT', 'A development of homes.'],
  ['FLOOR_PLAN', 'A floor plan of one or more units.'],
  ['UNIT', 'A home for sale.'],
  ['BUYER', 'A purchase.'],
  ['BUYER_AGENT', 'An agent who represents buyers.'],
  ['LEAD', 'A person interested in a project.'],
  ['RESERVATION', 'A buyer''s claim on a unit.'],
  ['OFFER', 'A price proposed in a negotiation.'],
  ['AGREEMENT', 'A document to be signed.']
]);
