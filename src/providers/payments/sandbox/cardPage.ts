/** The page on which a bank would authenticate the holder of the card. */

const page = (content: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sandbox bank</title>
<style>body { font: 1rem system-ui; max-width: 28rem; margin: 4rem auto; padding: 0 1rem } button { font: inherit; padding: .5rem 1rem; margin-right: .5rem }</style>
${content}
</html>`;

const escaped = (text: string) => text.replace(/[^\w-]/g, "");

/** The page of the bank. @param secret the client secret of the payment intent */
export const authenticationPage = (secret: string) =>
  page(`<h1>3-D Secure</h1>
<p>A test payment wants to be confirmed. No money moves.</p>
<form method="post" action="/sandbox/authenticate/${escaped(secret)}">
  <button name="decision" value="complete">Complete</button>
  <button name="decision" value="fail">Fail</button>
</form>`);

export const donePage = page(`<h1>3-D Secure</h1>
<p>There is nothing more to do here; you can close this page.</p>`);
