/** An organization's account at DocuSign; src/providers/signing/docusignClient.ts handles the agreements. */
import { createPrivateKey } from "node:crypto";
import { AddressRefused, AddressUnknown, resolvePublicAddress } from "../../network/publicAddress.ts";
import {
  createDocusign,
  docusignServer,
  type DocusignAccount,
} from "../../providers/signing/docusignClient.ts";
import { SigningFailed } from "../../providers/signing/index.ts";
import { ConnectionFailed, Misconfigured, type Adapter } from "../adapter.ts";

const adapter: Adapter = {
  async check({ server = docusignServer }, { policy }) {
    try {
      await resolvePublicAddress(server as string, policy);
    } catch (error) {
      if (!(error instanceof AddressRefused || error instanceof AddressUnknown)) throw error;
      throw new Misconfigured("config.server", error.message);
    }
  },
  async connect({ config, credentials }, { policy }) {
    if (!credentials)
      throw new ConnectionFailed("The credentials are missing; update the integration with them.", {
        retryable: false,
      });
    try {
      createPrivateKey(credentials["privateKey"] as string);
    } catch (error) {
      throw new ConnectionFailed("The private key is not valid PEM; enter it again.", {
        retryable: false,
        cause: error,
      });
    }
    const account = { config, credentials } as DocusignAccount;
    try {
      const docusign = createDocusign({ ...account, policy, noticeUrl: () => undefined });
      return { externalAccount: await docusign.connect() };
    } catch (error) {
      if (!(error instanceof SigningFailed)) throw error;
      throw new ConnectionFailed(error.message, { retryable: error.kind === "LATER", cause: error });
    }
  },
};

export default adapter;
