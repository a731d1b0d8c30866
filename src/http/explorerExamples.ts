/**
 * What the explorer page opens with: a query that anybody may run, then how to sign in there. The token goes into the
 * headers editor below the document, which the page keeps only when its user asks it to.
 */
export const explorerQuery = `# The triangle at the right runs one of these; choose which.

# 1. Anybody may ask this:
query PublicProjects {
  publicProjects(first: 10) {
    id
    title
    status
    city
  }
}

# 2. Sign in, here as the user of the demo, and copy the token.
mutation SignIn {
  login(input: {
    username: "demo@plat.example"
    password: "demo-password"
  }) {
    token
    expiresAt
  }
}

# 3. Open the tab "Headers" below, and replace its text by:
#      { "Authorization": "Bearer <the token>" }
#    From here on you ask as that user.
query Me {
  viewer {
    fullName
    organizations {
      role
      organization {
        name
      }
    }
  }
}

query NewLeads {
  leads(first: 20, filter: { status: [NEW] }) {
    id
    name
    email
    registeredAt
    project {
      title
    }
  }
}
`;

export const explorerHeaders = `{ "X-Requested-With": "explorer" }`;
