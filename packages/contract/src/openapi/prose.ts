/** What the document says in words: the introduction and one sentence for each group of operations. */

export const description = `A multi-tenant control plane. Register a cluster, start its relay, submit jobs.

**Signing in.** \`POST /api/v1/auth/login\` answers a token set. Send \`Authorization: Bearer <accessToken>\` with every call that is not public. The access token lives for 15 minutes; \`POST /api/v1/auth/refresh\` trades the refresh token, which works once within 7 days, for a new set. Programs send an API token of \`POST /api/v1/users/me/tokens\` in its place.

**Browsers.** A page of the platform's own origin signs in at \`POST /api/v1/auth/session\` instead: the tokens go into cookies that no script can read, and count wherever a request has no \`Authorization\` header. A request by cookie that the page of another origin may have caused is 403 \`cross_origin_request\`; one of a page that came by plain HTTP, from another machine, is 403 \`https_required\`.

**Permissions.** Each operation names the permission that it needs. Roles grant permissions, and \`GET /api/v1/auth/me\` lists those of the caller. A caller sees only what belongs to its own organisation: anything else is 404.

**Errors.** Every error is \`{error, message, traceId}\`. \`error\` is a code that programs can rely on, \`message\` says what to do next, and \`traceId\` (also the header \`X-Trace-Id\`) finds the request in the logs.

**Limits.** Answers carry \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\`. After 429 or 503, wait as many seconds as \`Retry-After\` says. A body holds at most 4 MiB.

**Repeating.** Every POST of a signed-in user takes an \`Idempotency-Key\`. Where an answer was lost, send the same request with the same key again: it is done once, and answered as it was the first time.

**Paging.** Lists take \`page\` (from 1) and \`pageSize\` (20, at most 100) and show the newest first. Times are ISO 8601 in UTC, identifiers are opaque.

**Versions.** The version stands in the path. A later release may add fields to answers: ignore those you do not know. This document describes exactly the release that serves it.`

export const tags = [
  { name: 'Health', description: 'Whether the platform runs, has started and can serve.' },
  { name: 'Setup', description: 'The first run: creates the platform organisation and its administrator.' },
  { name: 'Authentication', description: 'Sign in, stay signed in, sign out.' },
  { name: 'Clusters', description: 'Clusters of the organisation and the enrollment of their relays.' },
  { name: 'Sites', description: 'Places that clusters stand in.' },
  { name: 'Jobs', description: 'Scripts that run on the nodes of a cluster.' },
  { name: 'Batches', description: 'Up to 500 jobs, accepted, followed, cancelled and retried together.' },
  { name: 'Events', description: 'What the platform tells: the catalog of its events.' },
  { name: 'Webhooks', description: 'Events, delivered to addresses of the organisation.' },
  { name: 'Notifications', description: 'What a user should know of.' },
  { name: 'Preferences', description: 'Dashboard layout and saved filters of a user.' },
  { name: 'Users', description: 'The users of the organisation, their roles, sessions and API tokens.' },
  { name: 'Modules', description: 'The catalog and the installed modules.' },
  { name: 'Portal', description: 'Where the portal begins, its navigation, and the numbers that it shows.' },
  {
    name: 'Updates',
    description: 'Newer releases of the platform, applying one, and the way back to the previous one.',
  },
  { name: 'Identity providers', description: 'Who signs people in beside the platform itself.' },
  { name: 'Organisations', description: 'The tenants of the platform.' },
  { name: 'Audit', description: 'Who changed what; entries form a chain that can be verified.' },
  {
    name: 'Relay protocol',
    description: 'What a relay calls: it polls for work and reports results, over HTTPS only.',
  },
  { name: 'Platform', description: 'The contract, its reference page, public keys and the relay program.' },
]
