import type { Client } from "@plat/client";
import { useState } from "react";
import { Message } from "./Message.tsx";
import { addCard, pay } from "./operations.ts";

/**
 * Tokens of the sandbox. With a real processor, its JavaScript library converts the card into a token, so
 * that this page never has card numbers.
 */
const cards = {
  tok_visa: "Visa",
  tok_threeDSecureRequired: "Visa that the bank asks about",
  tok_chargeCustomerFail: "Visa that the bank refuses",
};

interface Properties {
  plat: Client;
  title: string;
  deposit: { id: string; amountDue: string };
}

/** Pays the amount due. The payment is complete when its event arrives, because a bank may take some time. */
export function Payment({ plat, title, deposit }: Properties) {
  const [token, setToken] = useState("tok_visa");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [confirmUrl, setConfirmUrl] = useState<string | null>();

  const charge = async () => {
    const { createProcessorCard: card } = await plat.request(addCard, { input: { token } });
    const { createPaymentIntent: payment } = await plat.request(pay, {
      input: { depositId: deposit.id, amount: deposit.amountDue, cardId: card!.id },
    });
    setConfirmUrl(payment!.nextActionUrl);
    if (payment!.status === "REQUIRES_PAYMENT_METHOD") throw new Error("The bank refused the payment.");
  };
  const submit = (event: { preventDefault(): void }) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    charge()
      .catch(setError)
      .finally(() => setBusy(false));
  };

  return (
    <form onSubmit={submit}>
      <label>
        Card{" "}
        <select value={token} onChange={({ target }) => setToken(target.value)}>
          {Object.entries(cards).map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      </label>{" "}
      <button disabled={busy || Number(deposit.amountDue) === 0} aria-label={`Pay the fee of ${title}`}>
        Pay
      </button>
      {confirmUrl && (
        <p>
          <a href={confirmUrl} target="_blank" rel="noreferrer">
            Confirm with the bank
          </a>
        </p>
      )}
      <Message of={error} />
    </form>
  );
}
