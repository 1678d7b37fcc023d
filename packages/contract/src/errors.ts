/**
 * All error codes: HTTP status, default message and, if it differs, the code in the response. Use cases raise codes
 * only; the statuses are defined here.
 */
export const errors = {
  invalid_json: [400, 'The request body must be one JSON object in UTF-8.'],
  validation_failed: [400, 'The request is not valid. See details for each field that must change.'],
  unsupported_media_type: [
    400,
    'Send the request body as JSON in UTF-8, with Content-Type: application/json and no other charset.',
  ],
  invalid_path: [
    400,
    'The request path contains characters that no route uses. Remove them and send the request again.',
  ],
  batch_limit_exceeded: [400, 'A batch can have at most 500 jobs. Split it and send the parts one after another.'],

  unauthenticated: [401, 'A valid bearer token is required. Sign in at POST /api/v1/auth/login.'],
  relay_revoked: [
    401,
    'Another relay has replaced this relay, or its cluster was removed. Enroll it with a new token.',
  ],
  token_expired: [401, 'The access token has expired. Renew it at POST /api/v1/auth/refresh.'],
  groups_incomplete: [
    403,
    'Your identity provider did not send all of your groups, so you cannot be registered. Contact an administrator.',
  ],
  invalid_credentials: [401, 'The username or the password is wrong.'],
  invalid_refresh_token: [401, 'The refresh token is expired, revoked or was used before. Sign in again.'],
  enrollment_token_invalid: [401, 'The enrollment token is not valid. Issue a new one for the cluster.'],
  enrollment_key_invalid: [
    401,
    'The enrollment key is not valid, was revoked, or its creator lacks the permission clusters:write. Create another one.',
  ],
  enrollment_key_expired: [401, 'The enrollment key has expired. Create another one.'],
  enrollment_token_expired: [401, 'The enrollment token has expired. Issue a new one for the cluster.'],

  sign_in_code_invalid: [
    401,
    'The sign-in code has expired, was used before, or belongs to another browser. Sign in again.',
  ],

  forbidden: [403, 'The caller lacks the permission for this operation.'],
  cross_origin_request: [403, 'The request came from another origin. Use the portal, or send a bearer token.'],
  https_required: [403, 'Sign-in over plain HTTP works only on the same machine. Use https.'],
  setup_already_complete: [403, 'Setup is complete. Sign in at POST /api/v1/auth/login.'],
  cluster_forbidden: [403, 'At least one cluster is not in the organisation. Nothing was changed.'],

  route_not_found: [404, 'There is no such path. See GET /api/v1/openapi.json.'],
  cluster_not_found: [404, 'The cluster does not exist or is not accessible.'],
  enrollment_key_not_found: [404, 'The enrollment key does not exist or is not accessible.'],
  relay_update_not_found: [404, 'The relay update does not exist or is not accessible.'],
  site_not_found: [404, 'The site does not exist or is not accessible.'],
  job_not_found: [404, 'The job does not exist or is not accessible.'],
  batch_not_found: [404, 'The batch does not exist or is not accessible.'],
  group_not_found: [404, 'The batch has no such group. See GET /api/v1/jobs/batch/{batchId}/groups.'],
  identity_provider_not_found: [404, 'The identity provider does not exist or is not accessible.'],
  user_not_found: [404, 'The user does not exist or is not accessible.'],
  organisation_not_found: [404, 'The organisation does not exist or is not accessible.'],
  session_not_found: [404, 'The session does not exist, has ended or is not accessible.'],
  token_not_found: [404, 'The API token does not exist or is not accessible.'],
  filter_not_found: [404, 'The saved filter does not exist or is not accessible.'],
  webhook_not_found: [404, 'The webhook does not exist or is not accessible.'],
  module_not_found: [404, 'There is no such module. See GET /api/v1/modules and GET /api/v1/modules/catalog.'],
  delivery_not_found: [404, 'The delivery does not exist, is too old or is not accessible.'],

  method_not_allowed: [405, 'The path does not support this method. See the Allow header.'],

  cluster_name_taken: [409, 'Another cluster of the organisation has this name. Choose another one.'],
  cluster_has_active_jobs: [409, 'The cluster has queued or running jobs. Cancel them or wait until they end.'],
  site_name_taken: [409, 'Another site of the organisation has this name. Choose another one.'],
  site_in_use: [409, 'Clusters belong to this site. Move them to another site first.'],
  enrollment_token_used: [409, 'The enrollment token was used before. Issue a new one for the cluster.'],
  enrollment_key_used_up: [409, 'The enrollment key has reached its maximum number of uses. Create another one.'],
  no_pending_relay: [409, 'The cluster has no relay that waits for approval.'],
  job_not_claimable: [409, 'The job is not waiting to be claimed by this relay.'],
  statement_key_unknown: [
    409,
    'The key that signs jobs was replaced, and the relay does not know its successor. Issue a token with "plat cluster enrollment-token CLUSTER" and enroll the relay again.',
  ],
  job_already_finished: [409, 'The job has already ended.'],
  batch_already_finished: [409, 'Every job of the batch has ended.'],
  nothing_to_retry: [
    409,
    'No job of the batch failed or was cancelled, or some jobs have not ended yet. If all have ended, try again shortly.',
  ],
  username_taken: [409, 'Another user of the platform has this name. Choose another one.'],
  organisation_name_taken: [409, 'Another organisation has this name. Choose another one.'],
  organisation_has_users: [409, 'The organisation has an administrator, who creates further users.'],
  last_administrator: [
    409,
    'An organisation must keep at least one administrator with a local account. Create another one first.',
  ],
  limit_reached: [409, 'The limit is reached. Remove a resource of this kind first.'],
  webhook_disabled: [409, 'The webhook is disabled. Enable it first.'],
  module_already_installed: [
    409,
    'This version of the module is already installed and running. Specify another version.',
  ],
  module_not_installed: [409, 'The module is not installed.'],
  module_operation_in_progress: [409, 'The module is being installed or uninstalled. Wait for that job to end.'],
  module_route_taken: [409, 'Another module has the API path. Uninstall that one first.'],
  job_not_cancellable: [409, 'Platform operations cannot be cancelled; they finish or roll back on their own.'],
  account_not_local: [409, 'The account belongs to an identity provider. Change it there.'],
  active_jobs: [409, 'Jobs are running. Wait for them to end, or update with force: true.'],
  update_in_progress: [409, 'The platform is being updated. Wait for that job to end.'],
  no_previous_version: [409, 'There is no previous version to roll back to.'],
  infrastructure_update_required: [
    409,
    'The release requires infrastructure changes. Deploy it instead of applying it.',
  ],
  relay_update_running: [409, 'Another relay update is running. Wait until it ends, or cancel it.'],
  relay_update_finished: [409, 'The relay update has ended.'],
  relay_signature_missing: [
    409,
    'The platform runs no release with a signed relay. Publish a release with "npm run release", apply it with "plat update apply", and try again.',
  ],
  lease_not_held: [409, 'The lease does not belong to this job. Claim the job first.'],
  output_out_of_order: [409, 'The output sequence number is ahead of the next expected one.'],
  target_changed: [
    409,
    'The number of clusters of the target differs from `expectedCount`. Check the target and send the request again with the new number.',
  ],
  conflict: [409, 'Another request changed the same resource at the same time. Try again.'],

  precondition_failed: [412, 'The resource changed since it was read. Read it again and retry.'],
  payload_too_large: [413, 'The request is larger than the limit. Send less at once.'],

  initial_admin_token_invalid: [422, 'The initial admin token is missing or wrong.'],
  initial_admin_token_expired: [
    422,
    'The initial admin token has expired. Restart the platform twice to create a new one.',
  ],
  // A body with the id of a missing site returns 422 with the same public code as the 404.
  unknown_site: [422, 'The site does not exist in the organisation.', 'site_not_found'],
  unknown_job_type: [422, 'This job type does not exist. Use InvokeScript.'],
  job_type_not_submittable: [422, 'Jobs of this type are created by their own endpoints.'],
  node_not_in_cluster: [422, 'A target node does not belong to the cluster.'],

  manifest_invalid: [422, 'The module manifest is invalid. See details.'],
  manifest_id_mismatch: [422, 'The manifest id differs from the requested module or the image label.'],
  manifest_mismatch: [422, 'The manifest does not match the image. Build and push them together.'],
  sdk_incompatible: [422, 'The module requires another version of the SDK than the platform provides.'],
  module_signature_unverified: [
    422,
    'No trusted key has signed this image. Sign it, or add the key that signed it to the trusted keys.',
  ],
  module_isolation_unavailable: [
    422,
    'This platform cannot run containers, so it runs only its own modules. Make runc work, or start the platform with PLAT_MODULE_ISOLATION=process.',
  ],
  image_unreachable: [422, 'The image or its manifest could not be read. Check the reference and the registry.'],
  image_not_a_module: [422, 'The image does not have the labels of a module. Build it with plat module build.'],
  version_not_available: [
    422,
    'There is no such release. See GET /api/v1/modules/catalog, or GET /api/v1/platform/updates/check.',
  ],

  idp_config_invalid: [422, 'The identity provider is missing required settings. See details.'],
  consent_not_applicable: [422, 'Identity providers of this type require no consent.'],

  idempotency_key_reused: [422, 'This Idempotency-Key was used with another request. Use a new key.'],
  role_not_grantable: [
    422,
    'The organisation cannot have users with this role, or the role has permissions that the caller does not have.',
  ],
  filter_not_applicable: [422, 'The saved filter contains parameters that clusters cannot be filtered by.'],
  url_not_allowed: [422, 'The platform is not allowed to call this address.'],

  rate_limited: [429, 'Too many requests. Wait for the time in Retry-After and try again.'],
  module_failed: [
    502,
    'The module failed or returned an invalid response. Try again; if it persists, contact the module author.',
  ],
  upgrade_not_supported: [501, 'Modules accept only HTTP requests. WebSocket is not supported.'],
  module_unavailable: [503, 'The module is not running at the moment. Try again shortly.'],
  module_timeout: [504, 'The module did not respond in time.'],
  internal_error: [500, 'The server failed unexpectedly. Report the traceId.'],
  overloaded: [503, 'The platform is receiving too much data at once. Try again shortly.'],
  starting: [503, 'The platform is starting. Try again shortly.'],
  release_source_unreachable: [
    503,
    'The releases cannot be read at the moment. Check PLAT_RELEASE_SOURCE and try again.',
  ],
  storage_full: [503, 'The disk of the platform is full. Try again after its operator has freed space.'],
  database_unavailable: [503, 'The database is unreachable. Try again shortly.'],
} as const satisfies Record<string, readonly [status: number, message: string, wireCode?: string]>

export type ErrorCode = keyof typeof errors

export const statusOf = (code: ErrorCode): number => errors[code][0]

export const messageOf = (code: ErrorCode): string => errors[code][1]

/** Returns the code in the response body, which can differ from the internal code. */
export const wireCodeOf = (code: ErrorCode): string => {
  const row: readonly [number, string, string?] = errors[code]
  return row[2] ?? code
}
