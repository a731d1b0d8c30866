-- Enumerations of erasures and deletions.

select app_private.describe_enum('erasure_status', 'Progress of an erasure.', array[
  ['RUNNING',
    'The person''s own records are erased; other records and files that mention the person are being processed.'],
  ['COMPLETED', 'Finished; the certificate is available.']
]);

select app_private.describe_enum('organization_deletion_status', 'Progress of the deletion of an organization.', array[
  ['SCHEDULED',
    'Starts at `finalAt`; until then the organization works as usual, and an owner can cancel the deletion.'],
  ['RUNNING', 'Records are being deleted; it can no longer be cancelled.'],
  ['COMPLETED', 'Deleted, except for what the law requires to be retained; the certificate is available.'],
  ['CANCELLED', 'Cancelled by an owner; nothing was deleted.']
]);
