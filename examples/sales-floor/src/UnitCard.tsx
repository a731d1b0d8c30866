import type { Client } from "@plat/client";
import { useState } from "react";
import { wordsOf } from "./Floor.tsx";
import { Message } from "./Message.tsx";
import { holdUnit, releaseUnit, reserveUnit, type Unit } from "./operations.ts";
import { Payment } from "./Payment.tsx";

interface Properties {
  plat: Client;
  unit: Unit;
  /** The person for whom units are held and reserved. */
  lead: { id: string; name: string } | undefined;
  permissions: readonly string[];
}

export function UnitCard({ plat, unit, lead, permissions }: Properties) {
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const { id, title, status, activeHold, activeReservation } = unit;
  const fee = activeReservation?.feeDeposit;

  // The card is updated by the event of the operation, as for all other viewers.
  const act = async (work: () => Promise<unknown>) => {
    setBusy(true);
    setError(undefined);
    await work()
      .catch(setError)
      .finally(() => setBusy(false));
  };
  const hold = () => plat.request(holdUnit, { input: { unitId: id, leadId: lead?.id } });
  const release = () => plat.request(releaseUnit, { input: { id: activeHold!.id } });
  const reserve = () =>
    plat.request(reserveUnit, { input: { unitId: id, leadId: lead?.id, acceptedTerms: true } });

  const isMine = permissions.includes("sale.write");
  return (
    <li data-unit={title} data-status={status} aria-busy={busy}>
      <h2>{title}</h2>
      <p className="status">{wordsOf(status)}</p>
      <p>{unit.price ? moneyOf(unit.price, unit.currency) : "Price on request"}</p>
      <p>
        {unit.bedrooms ?? "–"} bed, {unit.baths ?? "–"} bath, {unit.sqft ?? "–"} sq ft
      </p>
      {activeHold?.user && <p>Held by {activeHold.user.fullName}</p>}
      {activeReservation?.lead && <p>Reserved for {activeReservation.lead.name}</p>}
      {fee && <p>Fee {fee.status === "PAID" ? "paid" : `of ${moneyOf(fee.amountDue, unit.currency)} due`}</p>}
      {isMine && status === "AVAILABLE" && (
        <p>
          <button type="button" aria-label={`Hold ${title}`} disabled={busy} onClick={() => act(hold)}>
            Hold
          </button>{" "}
          <button
            type="button"
            aria-label={`Reserve ${title}`}
            disabled={busy || !lead}
            onClick={() => act(reserve)}
          >
            Reserve
          </button>
        </p>
      )}
      {isMine && activeHold && (
        <p>
          <button type="button" aria-label={`Release ${title}`} disabled={busy} onClick={() => act(release)}>
            Release
          </button>
        </p>
      )}
      {permissions.includes("finance.write") && fee && fee.status !== "PAID" && (
        <Payment plat={plat} title={title} deposit={fee} />
      )}
      <Message of={error} />
    </li>
  );
}

const moneyOf = (amount: string, currency: string) =>
  new Intl.NumberFormat(undefined, { style: "currency", currency, maximumFractionDigits: 0 }).format(
    Number(amount),
  );
