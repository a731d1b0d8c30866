import type { Client } from "@plat/client";
import { useEffect, useState } from "react";
import { Message } from "./Message.tsx";
import { leadsQuery, permissionsQuery, type Project } from "./operations.ts";
import { UnitCard } from "./UnitCard.tsx";
import { useFloor } from "./useFloor.ts";

const feeds = {
  connecting: "Connecting …",
  live: "Live",
  off: "Not live: only those who sell follow the project.",
};

export function Floor({ plat, project }: { plat: Client; project: Project }) {
  const { units, feed, error } = useFloor(plat, project);
  const [permissions, setPermissions] = useState<readonly string[]>([]);
  const [leads, setLeads] = useState<{ id: string; name: string }[]>([]);
  const [leadId, setLeadId] = useState("");
  const [failure, setFailure] = useState<unknown>();

  useEffect(() => {
    const read = async () => {
      const { viewer } = await plat.request(permissionsQuery, { projectId: project.id });
      setPermissions(viewer?.permissions ?? []);
      if (!viewer?.permissions.includes("lead.read")) return;
      const { leadsConnection } = await plat.request(leadsQuery, { projectId: project.id });
      setLeads(leadsConnection?.nodes ?? []);
    };
    read().catch(setFailure);
  }, [plat, project]);

  const lead = leads.find(({ id }) => id === leadId) ?? leads[0];
  const counts = Map.groupBy(units, ({ status }) => status);
  return (
    <>
      <p role="status">{feeds[feed]}</p>
      <Message of={error ?? failure} />
      {lead && (
        <label>
          For{" "}
          <select value={lead.id} onChange={({ target }) => setLeadId(target.value)}>
            {leads.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <ul className="counts">
        {[...counts].map(([status, some]) => (
          <li key={status} data-status={status}>
            {some.length} {wordsOf(status)}
          </li>
        ))}
      </ul>
      <ul className="units">
        {units.map((unit) => (
          <UnitCard key={unit.id} plat={plat} unit={unit} lead={lead} permissions={permissions} />
        ))}
      </ul>
    </>
  );
}

export const wordsOf = (status: string) => status.toLowerCase().replaceAll("_", " ");
