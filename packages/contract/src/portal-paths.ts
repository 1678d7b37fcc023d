/**
 * The paths at which the portal has a page; `{name}` stands for one segment. Whatever else a browser opens is answered with
 * 404, and the portal says so. The pages of modules, `/modules/<id>` and what is below, are passages.
 */
export const portalPaths = [
  '/',
  '/setup',
  '/sign-in',
  '/dashboard',
  '/clusters',
  '/clusters/register',
  '/clusters/{clusterId}',
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

/** The name in the query under which the portal is told at `/` which of its pages to show: for pages that others answer. */
export const openedPage = 'open'

/**
 * A place within the portal: a path, with query or fragment. Segments begin with a letter, a digit, `_` or `-`, so that
 * nothing here is another host or leads upwards, however often it is decoded: no `//`, no `\`, no `..`, no `%2f`.
 */
export const portalPath = /^\/(?:[\w-][\w.~-]*(?:\/[\w-][\w.~-]*)*\/?)?(?:[?#][\w.~%!$&'()*+,;=:@/?#-]*)?$/
