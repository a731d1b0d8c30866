/**
 * Queries of realistic pages: everything that a page shows, 50 records with their related records, without `first` for
 * lists that are short. No limit of the service may affect them, in an organization of any size.
 */

const file = "id title url filename filemime filesize updatedAt";
const image = "id title alt url thumbnailUrl width height sequence";
const address =
  "address { thoroughfare premise locality administrativeArea postalCode country latitude longitude }";
const person = "{ id fullName email phone avatarUrl title }";
const moves = "allowedTransitions { to }";
const unit = `id title subtitle number status standardStatus price originalListPrice soldPrice currency ppsf bedrooms baths halfBaths sqft level
  view orientation phase building garage hoaFee listingDate soldAt closedAt estimatedDeliveryDate moveInReady isSpec isFurnished isAccessible
  constructionStatus description metadata version updatedAt`;
const lead = `id name firstName lastName email phone company status origin source tags budgetMin budgetMax preferredLanguage preapproved isAgent
  registeredAt lastInteractionAt statusChangedAt metadata version updatedAt`;
const deposit = "id title amount amountPaid amountDue currency status dueAt paidAt isOverdue method sequence";
const offer =
  "id price kind side status round sequence expiresAt comments closingDate earnestMoney requestedCredits";
const reservation = `id number status price currency fee expiresAt executedAt statusChangedAt financingType occupancyType notes preapproved
  totalContractPrice metadata version updatedAt`;

/** Documents by title; each has the variable `$project` or none. */
export const fullPages: Readonly<Record<string, string>> = {
  "50 units with everything around them": `query Units($project: ID!) {
    units(first: 50, filter: { projectIds: [$project] }) {
      ${unit} ${address} ${moves}
      project { id title slug status currency timeZone city ${address} organization { id name slug } hero { ${image} } }
      floorPlan { id title code bedrooms baths sqft basePrice tourUrl images { ${image} } drawings { ${image} } documents { ${file} } }
      lot { id title number block status price premium areaSqft features images { ${image} } }
      images { ${image} } priceHistory(first: 5) { from to at reason actor ${person} }
      promotions { id title code kind amount percent startsAt endsAt }
      buyer { id fullName email phone status price purchaseDate closingDate }
      activeReservation { id number status expiresAt }
      reservations { ${reservation} ${moves} assignee ${person} lead { ${lead} } deposits { ${deposit} } documents { ${file} } }
      negotiations { id status round turn floorPrice listPrice notes offers { ${offer} response { id action comments } } }
      personalizations { id title status total dueOn selections { id quantity unitPrice total element { id title } option { id title } } }
      events(first: 5) { id name occurredAt actor ${person} }
    }
  }`,
  "50 leads with everything around them": `query Leads($project: ID!) {
    leads(first: 50, filter: { projectIds: [$project] }) {
      ${lead} ${address} ${moves} assignee ${person} agent { id name brokerage email phone } leadSource { id name }
      project { id title slug status } buyer { id fullName status price } falloutReason { id name }
      notes { id text pinned visibility insertedAt author ${person} }
      tasks { id title type status priority dueAt isOverdue assignee ${person} }
      appointments { id title type status startsAt endsAt location notes host ${person} salesOffice { id title } }
      phoneCalls { id direction outcome durationSeconds startedAt notes user ${person} }
      messages { id text insertedAt } contacts { id name email phone }
      reservations { ${reservation} unit { id title number price status } deposits { ${deposit} } documents { ${file} } }
      negotiations { id status round turn listPrice unit { id title number } currentOffer { ${offer} } }
      events(first: 10) { id name occurredAt changes actor ${person} }
    }
  }`,
  "50 reservations with everything around them": `{
    reservations(first: 50) {
      ${reservation} ${moves} assignee ${person} lead { ${lead} } unit { ${unit} floorPlan { id title } images { ${image} } }
      lot { id title number } project { id title slug } purchase { id fullName status price closingDate }
      deposits { ${deposit} charge { id status amount cardBrand cardLast4 receiptUrl } }
      charges { id status amount amountRefunded method cardBrand cardLast4 capturedAt refunds { id amount status } }
      documents { ${file} } negotiation { id status offers { ${offer} } } falloutReason { id name }
      events(first: 5) { id name occurredAt }
    }
  }`,
  "a project with everything around it": `query Project($project: ID!) {
    project(id: $project) {
      id title slug type status visibility currency city timeZone overview overviewHeadline amenities completionDate websiteUrl metadata ${address} ${moves}
      abstract { unitsTotal unitsAvailable priceMin priceMax } organization { id name slug phone email } avatar { id url } hero { ${image} }
      images { ${image} } documents { ${file} } sitePlans { id title url } collections { id title } testimonials { id text author rating }
      openHouses { id title startsAt endsAt } promotions { id title code kind amount percent } salesOffice { id title phone email }
      floorPlans { id title code bedrooms baths sqft basePrice availableCount priceMin images { ${image} } drawings { ${image} } }
      lots { id title number status price } leadSources { id name } depositSchedule { id title percent }
      units(first: 50) { ${unit} floorPlan { id title } lot { id number } images { ${image} } }
      leads(first: 50) { ${lead} assignee ${person} } reservations(first: 50) { ${reservation} lead { id name } unit { id title } }
      buyers(first: 50) { id fullName email status price unit { id title } deposits { ${deposit} } }
      negotiations(first: 50) { id status round turn unit { id title } currentOffer { ${offer} } }
      events(first: 50) { id name occurredAt subjectType subjectId actor ${person} }
    }
  }`,
  "500 units as a table": `query Table($project: ID!) {
    units(first: 500, filter: { projectIds: [$project] }) { ${unit} floorPlan { id title } lot { id number } buyer { id fullName } }
  }`,
  "500 leads as a table": `{
    leads(first: 500) { ${lead} assignee { id fullName } agent { id name } project { id title } leadSource { id name } }
  }`,
};
