-- Enumerations of cards, charges, refunds and payments accounts.

select app_private.describe_enum('card_brand', 'Card network.', array[
  ['VISA', 'Visa, including Visa Debit.'],
  ['MASTERCARD', 'Mastercard, including Maestro.'],
  ['AMEX', 'American Express.'],
  ['DISCOVER', 'Discover, issued in the United States.'],
  ['DINERS', 'Diners Club.'],
  ['JCB', 'Japan Credit Bureau.'],
  ['UNIONPAY', 'UnionPay.'],
  ['UNKNOWN', 'The processor reported no network, or one not listed here.']
]);

select app_private.describe_enum('card_funding', 'Source of the funds of a card.', array[
  ['CREDIT', 'A credit line.'],
  ['DEBIT', 'A bank account.'],
  ['PREPAID', 'A prepaid balance.'],
  ['UNKNOWN', 'Not reported by the processor.']
]);

select app_private.describe_enum('card_status', 'Whether a card can be charged.', array[
  ['ACTIVE', 'Can be charged.'],
  ['EXPIRED', 'The expiry month has passed; it cannot be charged.'],
  ['REMOVED', 'Removed by its user; it cannot be charged.']
]);

select app_private.describe_enum('payments_account_status', 'Whether an organization can accept payments.', array[
  ['NOT_STARTED', 'No representative has been added yet.'],
  ['ONBOARDING', 'The processor is waiting for more information.'],
  ['PENDING_VERIFICATION', 'The processor is verifying the information.'],
  ['ENABLED', 'Accepts payments.'],
  ['RESTRICTED', 'The processor refuses further payments until it receives more information.'],
  ['DISABLED', 'The processor closed the account.']
]);

select app_private.describe_enum('representative_kind', 'Relation of a representative to the organization.', array[
  ['AUTHORIZED_REPRESENTATIVE', 'Authorized to act for the organization; each organization has one.'],
  ['BENEFICIAL_OWNER', 'Owns 25 percent or more of the organization.'],
  ['DIRECTOR', 'Member of the board of directors.'],
  ['EXECUTIVE', 'Member of senior management.']
]);

select app_private.describe_enum('representative_status',
  'Progress of the processor''s verification of a representative.', array[
  ['UNVERIFIED', 'Not submitted for review yet.'],
  ['PENDING', 'Under review by the processor.'],
  ['VERIFIED', 'Identity confirmed by the processor.'],
  ['REQUIREMENTS_DUE', 'The processor needs more information; see `requirements`.'],
  ['REJECTED', 'The processor could not verify the person.']
]);

select app_private.describe_enum('charge_status', 'Outcome of a card charge.', array[
  ['PENDING', 'The processor has not decided yet.'],
  ['REQUIRES_ACTION', 'The cardholder must confirm the payment with the bank.'],
  ['SUCCEEDED', 'The amount was paid.'],
  ['FAILED', 'Declined; see `failureCode`.'],
  ['CANCELLED', 'Cancelled before payment.'],
  ['PARTIALLY_REFUNDED', 'Part of the amount was refunded.'],
  ['REFUNDED', 'The full amount was refunded.'],
  ['DISPUTED', 'Contested by the cardholder at the bank.']
]);

select app_private.describe_enum('payment_intent_status', 'Progress of a payment at the processor.', array[
  ['REQUIRES_PAYMENT_METHOD', 'No card is attached, or the last one was declined.'],
  ['REQUIRES_CONFIRMATION', 'A card is attached; the payment has not been confirmed.'],
  ['REQUIRES_ACTION', 'The payer must confirm the payment with the bank; see `nextActionUrl`.'],
  ['PROCESSING', 'The processor has not decided yet.'],
  ['REQUIRES_CAPTURE', 'Authorized by the bank; the amount has not been captured.'],
  ['SUCCEEDED', 'The amount was paid.'],
  ['CANCELED', 'Cancelled before payment.']
]);

select app_private.describe_enum('refund_status', 'Progress of a refund at the processor.', array[
  ['PENDING', 'Not completed by the processor yet.'],
  ['REQUIRES_ACTION', 'The payer must act to receive the money.'],
  ['SUCCEEDED', 'The money was returned.'],
  ['FAILED', 'The processor could not return the money.'],
  ['CANCELLED', 'Cancelled before the money was returned.']
]);

select app_private.describe_enum('refund_reason', 'Why a charge is refunded.', array[
  ['REQUESTED_BY_CUSTOMER', 'The payer asked for the refund.'],
  ['RESERVATION_REFUNDED', 'The reservation was reversed.'],
  ['DUPLICATE', 'Paid twice, or more than was due.'],
  ['FRAUDULENT', 'The card was used without the consent of its holder.'],
  ['OTHER', 'A reason that is not listed here.']
]);

select app_private.describe_enum('cancellation_effect_kind',
  'Effect of cancelling a purchase on a related record.', array[
  ['CHANGED', 'The status changes.'],
  ['REFUND', 'The charge is refunded to the card that paid it.'],
  ['RETURN', 'The deposit is to be repaid by wire or cheque; `updateDeposit` records when that is done.'],
  ['KEPT', 'Nothing changes, or the seller keeps the stated amount.']
]);
