/**
 * Paths of portal pages; `{name}` is one segment. Unknown paths return 404. Pages of modules, `/modules/<id>…`, are in
 * `modulePaths`.
 */
export const portalPaths = [
  '/',
  '/setup',
  '/sign-in',
  '/dashboard',
  '/clusters',
  '/clusters/register',
  '/clusters/enrollment-keys',
  '/clusters/relay-updates',
  '/clusters/{clusterId}',
  '/nodes',
  '/jobs',
  '/jobs/new',
  '/jobs/{jobId}',
  '/jobs/batches/{batchId}',
  '/modules',
  '/notifications',
  '/health',
  '/settings/account',
  '/settings/users',
  '/settings/webhooks',
  '/settings/audit',
  '/settings/identity',
  '/settings/organisations',
  '/settings/updates',
] as const

/**
 * Query parameter of `/` that names the portal page to show. When a browser opens a module page directly, the module
 * gateway redirects to `/` with this parameter.
 */
export const openedPageParameter = 'open'

/**
 * A location in the portal: a path with an optional query and fragment. Segments start with a letter, digit, `_` or
 * `-`, so that no decoding yields another host or a parent directory.
 */
export const portalPath = /^\/(?:[\w-][\w.~-]*(?:\/[\w-][\w.~-]*)*\/?)?(?:[?#][\w.~%!$&'()*+,;=:@/?#-]*)?$/
