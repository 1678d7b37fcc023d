/** Introduction of the OpenAPI document. */
export const description = `A multi-tenant control plane. Register a cluster, start its relay, submit jobs.

**Authentication.** \`POST /api/v1/auth/login\` returns a token set. Send \`Authorization: Bearer <accessToken>\` with every request that is not public. The access token is valid for 15 minutes; \`POST /api/v1/auth/refresh\` exchanges the refresh token, which is valid once within 7 days, for a new set. Programs use an API token of \`POST /api/v1/users/me/tokens\` instead.

**Browsers.** A page of the platform’s own origin signs in at \`POST /api/v1/auth/session\`: the tokens are set as cookies that scripts cannot read, and apply to requests without an \`Authorization\` header. A cookie request that a page of another origin may have caused returns 403 \`cross_origin_request\`; one from a page that was loaded by plain HTTP from another machine returns 403 \`https_required\`.

**Permissions.** Each operation names the permission that it requires. Roles grant permissions, and \`GET /api/v1/auth/me\` lists those of the caller. Resources of other organisations return 404.

**Errors.** Every error is \`{error, message, traceId}\`. \`error\` is a stable code for programs, \`message\` says what to do next, and \`traceId\` (also the \`X-Trace-Id\` header) identifies the request in the logs.

**Limits.** Responses include \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\`. After 429 or 503, wait for the number of seconds in \`Retry-After\`. The maximum body size is 4 MiB, and 64 KiB for operations without authentication. A body must arrive within 30 seconds.

**Idempotency.** Every POST of a signed-in user accepts an \`Idempotency-Key\`. If a response is lost, send the same request with the same key again: it is executed once and returns the first response.

**Pagination.** Lists accept \`page\` (from 1) and \`pageSize\` (default 20, at most 100) and return the newest items first. To read a whole list while it changes, send \`nextCursor\` of each response as \`cursor\` of the next request, with the same filters, until it is absent: every item that exists throughout appears exactly once. Times are ISO 8601 in UTC; identifiers are opaque.

**Versions.** The version is part of the path. A later release may add fields to responses: ignore unknown fields. This document describes exactly the release that serves it.`

export const tags = [
  { name: 'Health', description: 'Whether the platform runs, has started and can serve.' },
  { name: 'Setup', description: 'The first run: creates the platform organisation and its administrator.' },
  { name: 'Authentication', description: 'Sign in, refresh and sign out.' },
  { name: 'Clusters', description: 'Clusters of the organisation and the enrollment of their relays.' },
  { name: 'Sites', description: 'Sites that group clusters.' },
  { name: 'Jobs', description: 'Scripts that run on the nodes of a cluster.' },
  { name: 'Batches', description: 'Up to 500 jobs that are submitted, tracked, cancelled and retried together.' },
  { name: 'Events', description: 'The catalog of the platform’s events.' },
  { name: 'Webhooks', description: 'Delivery of events to endpoints of the organisation.' },
  { name: 'Notifications', description: 'Notifications of a user.' },
  { name: 'Preferences', description: 'Dashboard layout and saved filters of a user.' },
  { name: 'Users', description: 'The users of the organisation, their roles, sessions and API tokens.' },
  { name: 'Modules', description: 'The catalog and the installed modules.' },
  { name: 'Portal', description: 'Configuration, navigation and figures of the portal.' },
  {
    name: 'Updates',
    description: 'Platform releases: check, apply and roll back.',
  },
  { name: 'Identity providers', description: 'Identity providers for sign-in.' },
  { name: 'Organisations', description: 'The tenants of the platform.' },
  { name: 'Audit', description: 'Changes and their authors, as a verifiable chain of entries.' },
  {
    name: 'Relay protocol',
    description: 'Endpoints for relays, which poll for work and report results over HTTPS.',
  },
  { name: 'Platform', description: 'The contract, its reference page, public keys and the relay program.' },
]
