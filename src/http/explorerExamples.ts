/**
 * What the explorer page opens with: how to sign in there. The token goes into the headers editor below the document,
 * which the page keeps only when its user asks it to.
 */
export const explorerQuery = `# 1. Sign in: run this, and copy the token from the answer.
mutation SignIn {
  login(input: { login: "you@example.com", password: "your password" }) {
    token
  }
}

# 2. Open the tab "Headers" below, and replace its text by:
#      { "Authorization": "Bearer <the token>" }
#
# 3. Everything you run from here on is yours:
query Me {
  viewer {
    id
    fullName
  }
}

query NewestLeads {
  leads(first: 20, filter: { status: [NEW] }) {
    id
    name
    email
    phone
    status
  }
}
`;

export const explorerHeaders = `{ "X-Requested-With": "explorer" }`;
