-- Enumerations of agreements and their signers.

select app_private.describe_enum('agreement_type', 'Legal kind of an agreement.', array[
  ['RESERVATION', 'Reserves a unit before a purchase contract.'],
  ['PURCHASE', 'The purchase contract.'],
  ['AMENDMENT', 'A change to a contract.'],
  ['ADDENDUM', 'An addition to a contract.'],
  ['DISCLOSURE', 'Facts that the seller must disclose by law.'],
  ['NDA', 'A non-disclosure agreement.'],
  ['AGENCY', 'Appoints an agency to sell for the developer.'],
  ['COMMISSION', 'Sets the commission of an agent.'],
  ['CHANGE_ORDER', 'A change to the selected options or the construction.'],
  ['RELEASE', 'A mutual release from a contract.'],
  ['OTHER', 'Any other kind.']
]);

select app_private.describe_enum('agreement_status',
  'Progress of an agreement, from draft to countersignature.', array[
  ['DRAFT', 'In preparation; not sent.'],
  ['SENT', 'Sent to the signers; none has opened it.'],
  ['VIEWED', 'At least one signer opened it; none has signed.'],
  ['PARTIALLY_SIGNED', 'Some signers have signed.'],
  ['SIGNED', 'All signers on the buyer''s side have signed; not countersigned yet.'],
  ['EXECUTED', 'Countersigned by the seller.'],
  ['DECLINED', 'A signer refused to sign.'],
  ['EXPIRED', 'The deadline passed before all had signed.'],
  ['VOIDED', 'Withdrawn by the seller after it was sent.']
]);

select app_private.describe_enum('signing_provider', 'Service that collects the signatures of an agreement.', array[
  ['EMBEDDED', 'The built-in signing page: a link and a one-time code.'],
  ['DOCUSIGN', 'DocuSign, through the organization''s integration `docusign`.']
]);

select app_private.describe_enum('agreement_signer_role', 'Capacity in which a person signs an agreement.', array[
  ['BUYER', 'Signs as the main purchaser.'],
  ['CO_BUYER', 'Purchases together with the buyer.'],
  ['GUARANTOR', 'Is liable for the obligations of the buyer.'],
  ['WITNESS', 'Attests the signatures of others.'],
  ['SELLER_REPRESENTATIVE', 'Countersigns for the seller.'],
  ['OTHER', 'Any other capacity.']
]);

select app_private.describe_enum('agreement_signer_status', 'Progress of one signer of an agreement.', array[
  ['WAITING', 'Not invited yet: the agreement is a draft, or earlier signers have not signed.'],
  ['INVITED', 'Was sent the link to sign; has not opened it.'],
  ['VIEWED', 'Opened the agreement; has not signed.'],
  ['SIGNED', 'Signed the current version of the document.'],
  ['DECLINED', 'Refused to sign.']
]);

select app_private.describe_enum('code_channel', 'How a one-time code is delivered.', array[
  ['EMAIL', 'To the recipient''s email address.'],
  ['SMS', 'To the recipient''s phone, as a text message.']
]);

select app_private.describe_enum('agreement_file_kind', 'Purpose of a file of an agreement.', array[
  ['DOCUMENT', 'A version of the document to be signed.'],
  ['SIGNED', 'The signed document, as returned by the signing provider.'],
  ['CERTIFICATE', 'Certificate of who signed what, when and from which IP address.']
]);

select app_private.describe_enum('agreement_trail_kind', 'Kind of entry in the audit trail of an agreement.', array[
  ['SENT', 'The agreement was sent to the signers.'],
  ['INVITED', 'A signer was invited to sign.'],
  ['REMINDED', 'A signer received a reminder.'],
  ['CODE_SENT', 'A one-time code was sent to a signer.'],
  ['VIEWED', 'A signer opened the agreement.'],
  ['SIGNED', 'A signer signed.'],
  ['DECLINED', 'A signer refused to sign.'],
  ['REPLACED', 'A new version of the document replaced the previous one.'],
  ['CHANGED', 'The address of a signer was changed.'],
  ['COMPLETED', 'All signers have signed.'],
  ['EXECUTED', 'The seller countersigned.'],
  ['VOIDED', 'The agreement was withdrawn.'],
  ['EXPIRED', 'The deadline passed before all had signed.']
]);
