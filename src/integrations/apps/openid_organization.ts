export { default } from "./openid_account.ts";
