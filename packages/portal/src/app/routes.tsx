import { openedPageParameter } from '@platform/contract/portal-paths'
import { createRootRoute, createRoute, lazyRouteComponent, Outlet, redirect } from '@tanstack/react-router'
import { configurationQuery, meQuery, navigationQuery } from '../api/account.ts'
import { ApiError } from '../api/api-error.ts'
import { queries } from '../api/query.ts'
import { oneOfIn, textIn, textParams, timeIn, withoutUndefined } from '../lib/search.ts'
import { clusterSorts, nodeSorts } from '../pages/clusters/cluster-filter.ts'
import { SessionEnd } from '../pages/sign-in/session-end.tsx'
import { LeaveQuestion } from '../ui/leave.tsx'
import { Toasts } from '../ui/toast.tsx'

// Reports a page that cannot be loaded as `unreachable`. Otherwise the router would reload the portal, which discards
// all input and shows a browser error while the platform is down. `reloadOnceAfterUpdate` handles outdated tabs.
const lazyPage: typeof lazyRouteComponent = (load, name) =>
  lazyRouteComponent(
    () =>
      load().catch((cause: unknown) => {
        throw ApiError.unreachable(cause)
      }),
    name,
  )

const root = createRootRoute({
  component: () => (
    <>
      <Outlet />
      <Toasts />
      <LeaveQuestion />
      <SessionEnd />
    </>
  ),
})

// Before setup only the wizard is available; afterwards the wizard is not.
async function requireSetup(isComplete: boolean): Promise<void> {
  const { setupComplete } = await queries.ensureQueryData(configurationQuery)
  if (setupComplete !== isComplete) throw redirect({ to: isComplete ? '/setup' : '/sign-in' })
}

const setup = createRoute({
  getParentRoute: () => root,
  path: '/setup',
  validateSearch: textParams('step'),
  beforeLoad: () => requireSetup(false),
  component: lazyPage(() => import('../pages/setup/setup-page.tsx'), 'SetupPage'),
})

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: (search) =>
    withoutUndefined({
      returnTo: textIn(search, 'returnTo'),
      code: textIn(search, 'code'),
      error: textIn(search, 'error'),
      traceId: textIn(search, 'traceId'),
      notice: oneOfIn(search, 'notice', ['setup-complete']),
    }),
  beforeLoad: () => requireSetup(true),
  component: lazyPage(() => import('../pages/sign-in/sign-in-page.tsx'), 'SignInPage'),
})

// Pages that require a sign-in need the user and the navigation before they render.
const signedIn = createRoute({
  getParentRoute: () => root,
  id: 'signed-in',
  beforeLoad: async ({ location }) => {
    await requireSetup(true)
    try {
      await Promise.all([queries.ensureQueryData(meQuery), queries.ensureQueryData(navigationQuery)])
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { returnTo: location.href } })
    }
  },
  component: lazyPage(() => import('../shell/shell.tsx'), 'Shell'),
})

const parent = () => signedIn

const page = <const Path extends string>(path: Path, component: ReturnType<typeof lazyPage>) =>
  createRoute({ getParentRoute: parent, path, component })

const home = createRoute({
  getParentRoute: parent,
  path: '/',
  validateSearch: (search) => withoutUndefined({ open: textIn(search, openedPageParameter) }),
  beforeLoad: ({ search: { open } }) => {
    // The platform redirects direct visits to a module's page to this URL.
    const href = moduleAddress(open)
    throw href === undefined ? redirect({ to: '/dashboard' }) : redirect({ href })
  },
})

// The URL may be forged, so only paths below `/modules` are accepted. Browsers keep the fragment across the redirect.
function moduleAddress(text = ''): string | undefined {
  const url = URL.parse(text, location.origin)
  const isModulePage = url?.origin === location.origin && url.pathname.startsWith('/modules/')
  return isModulePage ? url.pathname + url.search + (url.hash || location.hash) : undefined
}

const dashboard = createRoute({
  getParentRoute: parent,
  path: '/dashboard',
  validateSearch: (search) => withoutUndefined({ range: oneOfIn(search, 'range', ['day', 'week', 'month']) }),
  component: lazyPage(() => import('../pages/dashboard/dashboard-page.tsx'), 'DashboardPage'),
})

const clusters = createRoute({
  getParentRoute: parent,
  path: '/clusters',
  validateSearch: (search) =>
    withoutUndefined({
      status: oneOfIn(search, 'status', ['Healthy', 'Degraded', 'Pending', 'Offline']),
      type: oneOfIn(search, 'type', ['Hypervisor', 'CloudLocal']),
      search: textIn(search, 'search'),
      selector: textIn(search, 'selector'),
      sort: oneOfIn(search, 'sort', clusterSorts),
    }),
  component: lazyPage(() => import('../pages/clusters/clusters-page.tsx'), 'ClustersPage'),
})

const registerCluster = createRoute({
  getParentRoute: parent,
  path: '/clusters/register',
  validateSearch: textParams('cluster'),
  component: lazyPage(() => import('../pages/clusters/register-page.tsx'), 'RegisterPage'),
})

const enrollmentKeys = page(
  '/clusters/enrollment-keys',
  lazyPage(() => import('../pages/clusters/enrollment-keys-page.tsx'), 'EnrollmentKeysPage'),
)

const relayUpdates = createRoute({
  getParentRoute: parent,
  path: '/clusters/relay-updates',
  validateSearch: textParams('selector', 'update'),
  component: lazyPage(() => import('../pages/clusters/relay-updates-page.tsx'), 'RelayUpdatesPage'),
})

const cluster = createRoute({
  getParentRoute: parent,
  path: '/clusters/$clusterId',
  validateSearch: textParams('tab'),
  component: lazyPage(() => import('../pages/clusters/cluster-page.tsx'), 'ClusterPage'),
})

const nodes = createRoute({
  getParentRoute: parent,
  path: '/nodes',
  validateSearch: (search) =>
    withoutUndefined({
      selector: textIn(search, 'selector'),
      os: textIn(search, 'os'),
      search: textIn(search, 'search'),
      sort: oneOfIn(search, 'sort', nodeSorts),
    }),
  component: lazyPage(() => import('../pages/clusters/nodes-page.tsx'), 'NodesPage'),
})

const jobs = createRoute({
  getParentRoute: parent,
  path: '/jobs',
  validateSearch: (search) =>
    withoutUndefined({
      status: oneOfIn(search, 'status', ['Queued', 'Running', 'Completed', 'Failed', 'Cancelled']),
      clusterId: textIn(search, 'clusterId'),
      batchId: textIn(search, 'batchId'),
      createdBy: textIn(search, 'createdBy'),
      name: textIn(search, 'name'),
      since: timeIn(search, 'since'),
      until: timeIn(search, 'until'),
      tab: textIn(search, 'tab'),
    }),
  component: lazyPage(() => import('../pages/jobs/jobs-page.tsx'), 'JobsPage'),
})

const newJob = createRoute({
  getParentRoute: parent,
  path: '/jobs/new',
  validateSearch: (search) =>
    withoutUndefined({
      clusterId: textIn(search, 'clusterId'),
      from: textIn(search, 'from'),
      selector: textIn(search, 'selector'),
      all: search['all'] === true ? (true as const) : undefined,
      example: textIn(search, 'example'),
    }),
  component: lazyPage(() => import('../pages/jobs/new-job-page.tsx'), 'NewJobPage'),
})

const job = page(
  '/jobs/$jobId',
  lazyPage(() => import('../pages/jobs/job-page.tsx'), 'JobPage'),
)

const batch = createRoute({
  getParentRoute: parent,
  path: '/jobs/batches/$batchId',
  validateSearch: textParams('with'),
  component: lazyPage(() => import('../pages/jobs/batch-page.tsx'), 'BatchPage'),
})

const modules = createRoute({
  getParentRoute: parent,
  path: '/modules',
  validateSearch: textParams('module', 'job', 'search', 'show'),
  component: lazyPage(() => import('../pages/modules/modules-page.tsx'), 'ModulesPage'),
})

// The module handles the rest of the path.
const modulePage = page(
  '/modules/$moduleId/$',
  lazyPage(() => import('../pages/modules/module-frame-page.tsx'), 'ModuleFramePage'),
)

const notifications = createRoute({
  getParentRoute: parent,
  path: '/notifications',
  validateSearch: (search) =>
    withoutUndefined({
      show: oneOfIn(search, 'show', ['unread', 'all']),
      type: textIn(search, 'type'),
      severity: textIn(search, 'severity'),
    }),
  component: lazyPage(() => import('../pages/notifications/notifications-page.tsx'), 'NotificationsPage'),
})

const health = page(
  '/health',
  lazyPage(() => import('../pages/health/health-page.tsx'), 'HealthPage'),
)

const account = createRoute({
  getParentRoute: parent,
  path: '/settings/account',
  validateSearch: textParams('tab'),
  component: lazyPage(() => import('../pages/account/account-page.tsx'), 'AccountPage'),
})

const users = createRoute({
  getParentRoute: parent,
  path: '/settings/users',
  validateSearch: textParams('user'),
  component: lazyPage(() => import('../pages/users/users-page.tsx'), 'UsersPage'),
})

const webhooks = createRoute({
  getParentRoute: parent,
  path: '/settings/webhooks',
  validateSearch: textParams('webhook'),
  component: lazyPage(() => import('../pages/webhooks/webhooks-page.tsx'), 'WebhooksPage'),
})

const audit = createRoute({
  getParentRoute: parent,
  path: '/settings/audit',
  validateSearch: textParams('actor', 'action', 'resource', 'from', 'to'),
  component: lazyPage(() => import('../pages/audit/audit-page.tsx'), 'AuditPage'),
})

const identity = createRoute({
  getParentRoute: parent,
  path: '/settings/identity',
  validateSearch: textParams('provider', 'consent', 'error'),
  component: lazyPage(() => import('../pages/identity/identity-page.tsx'), 'IdentityPage'),
})

const organisations = page(
  '/settings/organisations',
  lazyPage(() => import('../pages/organisations/organisations-page.tsx'), 'OrganisationsPage'),
)

const updates = page(
  '/settings/updates',
  lazyPage(() => import('../pages/updates/updates-page.tsx'), 'UpdatesPage'),
)

export const routeTree = root.addChildren([
  setup,
  signIn,
  signedIn.addChildren([
    home,
    dashboard,
    clusters,
    registerCluster,
    enrollmentKeys,
    relayUpdates,
    cluster,
    nodes,
    jobs,
    newJob,
    job,
    batch,
    modules,
    modulePage,
    notifications,
    health,
    account,
    users,
    webhooks,
    audit,
    identity,
    organisations,
    updates,
  ]),
])
