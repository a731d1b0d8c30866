/** The current units of a project, updated by events. */
import { type Client, isPlatError } from "@plat/client";
import { useEffect, useState } from "react";
import { changedUnitsQuery, type Project, type Unit, unitsQuery } from "./operations.ts";

export type Feed = "connecting" | "live" | "off";

/** Events that change the card of a unit. */
const names = ["unit.*", "unit_hold.*", "reservation.*", "deposit.*"];
/** Events of one transaction arrive together, so their units are read by one request. */
const gatherMs = 50;

export function useFloor(plat: Client, project: Project) {
  const [units, setUnits] = useState<ReadonlyMap<string, Unit>>(new Map());
  const [feed, setFeed] = useState<Feed>("connecting");
  const [error, setError] = useState<unknown>();

  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    let known = new Map<string, Unit>();
    const stale = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;

    const show = (read: Iterable<Unit>) => {
      if (signal.aborted) return;
      known = new Map([...known, ...[...read].map((unit) => [unit.id, unit] as const)]);
      setUnits(known);
    };
    const readAll = async () => {
      for await (const page of plat.pages(unitsQuery, { projectId: project.id }, { signal })) show(page);
    };
    const readStale = async () => {
      timer = undefined;
      const ids = [...stale].slice(0, 100);
      for (const id of ids) stale.delete(id);
      const { nodes } = await plat.request(changedUnitsQuery, { ids }, { signal });
      show(nodes.filter((node) => node !== null && "status" in node));
    };
    const unlessLeft = (failure: unknown) => {
      if (!signal.aborted) setError(failure);
    };

    const follow = async () => {
      let isRead = false;
      const events = plat.events({
        organizationId: project.organizationId,
        projectId: project.id,
        names,
        signal,
        // Called first when the stream is open, so every change after this read arrives as an event.
        onComplete: () => {
          if (isRead) return;
          isRead = true;
          setFeed("live");
          readAll().catch(unlessLeft);
        },
      });
      for await (const { subjectId } of events) {
        for (const unit of known.values())
          if (subjectId && idsOf(unit).includes(subjectId)) stale.add(unit.id);
        if (stale.size > 0) timer ??= setTimeout(() => void readStale().catch(unlessLeft), gatherMs);
      }
    };
    follow().catch((failure: unknown) => {
      // Only sellers receive events; other viewers see the units as they were when the page was loaded.
      if (!isPlatError(failure, "NOT_FOUND")) return unlessLeft(failure);
      setFeed("off");
      return readAll().catch(unlessLeft);
    });
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [plat, project]);

  return { units: [...units.values()], feed, error };
}

/** The records that are shown on a card. */
const idsOf = ({ id, activeHold, activeReservation }: Unit) => [
  id,
  activeHold?.id,
  activeReservation?.id,
  activeReservation?.feeDeposit?.id,
];
