import type { Locator, Page } from 'playwright-core'
import { waitForPage } from './open.ts'
import type { SeedIds } from './seed.ts'

export interface PortalPage {
  name: string
  path: string | ((ids: SeedIds) => string)
  /** The only h1; the document title begins with it. */
  heading: string | RegExp
  allow?: RegExp[]
  isStandalone?: true
  /** Shows a page of this list with other data. Short runs skip it. */
  isVariant?: true
  hasTextFields?: true
  states?: readonly PageState[]
}

export interface PageState {
  name: string
  /** Names of the buttons, tabs and menu items that open this state, in order. */
  clicks: readonly (string | RegExp)[]
  role?: 'dialog' | 'menu' | 'tabpanel' | 'group'
  isNarrow?: true
  hasTextFields?: true
  isStatic?: true
}

type Clicks = readonly (string | RegExp)[]
const dialog = (name: string, ...clicks: Clicks): PageState => ({ name, clicks })
const form = (name: string, ...clicks: Clicks): PageState => ({ name, clicks, hasTextFields: true })
const plain = (name: string, ...clicks: Clicks): PageState => ({ name, clicks, isStatic: true })
const menu = (name: string, ...clicks: Clicks): PageState => ({ name, clicks, role: 'menu' })
const tab = (name: string, label: string | RegExp): PageState => ({ name, clicks: [label], role: 'tabpanel' })

const page = (
  name: string,
  path: PortalPage['path'],
  heading: string | RegExp,
  states: readonly PageState[] = [],
  rest: Partial<PortalPage> = {},
): PortalPage => ({ name, path, heading, states, ...rest })

const hasTextFields = true
const isVariant = true
const rowMenu = /^Actions for /
const provider = /directory$|__xss/

/** The setup steps that can be opened directly. Later steps need the input of earlier steps. */
export const setupPages = ['welcome', 'platform'].map((step) =>
  page(`setup-${step}`, `/setup?step=${step}`, 'Set up the platform'),
)

/** The expected 401 responses of a page without a session. */
export const signedOutErrors = [
  /^response 401 (GET \/api\/v1\/(auth\/me|portal\/navigation)|POST \/api\/v1\/auth\/session\/refresh)$/,
]

export const publicPages = [page('sign-in', '/sign-in', 'Sign in', [], { allow: signedOutErrors, hasTextFields })]

export const apiReference = page('docs', '/docs', /^API reference/)

const dashboardStates: readonly PageState[] = [
  form('search', 'Search'),
  { ...dialog('navigation', 'Open navigation'), isNarrow: true },
  { ...menu('theme', 'Theme'), isStatic: true },
  menu('user', /^Account of /),
  { ...plain('arranging', 'Edit dashboard', /^Move or resize /), role: 'group' },
]
const clusterStates = [
  tab('nodes', /^Nodes \(/),
  tab('timeline', 'Timeline'),
  tab('jobs', 'Jobs'),
  form('edit', 'Edit cluster'),
  form('labels', 'Edit labels'),
  plain('token', 'New enrollment token'),
  form('remove', 'Remove cluster'),
]
const nodesState = { ...dialog('nodes', /^All \d+ nodes$/), role: 'group' } as const
const moduleStates = [form('version', 'Install another version'), dialog('uninstall', 'Uninstall')]
const accountStates: readonly PageState[] = [
  { ...tab('password', 'Password'), hasTextFields },
  tab('sessions', 'Sessions'),
  plain('end-sessions', 'Sessions', 'End all other sessions'),
  tab('appearance', 'Appearance'),
]
const tokenStates = [form('create', 'Create API token'), dialog('revoke', /^Revoke /)]
const userStates = [
  form('create', 'Create user'),
  menu('menu', rowMenu),
  form('edit', rowMenu, 'Edit'),
  dialog('remove', rowMenu, 'Remove'),
]
const webhookStates = [
  form('add', 'Add webhook'),
  form('webhook', /^https:/),
  dialog('remove', /^https:/, 'Remove webhook'),
]
const auditStates: readonly PageState[] = [
  form('add', 'Add entry'),
  dialog('entry', / \d+$/),
  dialog('verify', 'Verify'),
  { ...menu('export', 'Export'), isStatic: true },
]
const identityStates = [
  form('add', 'Add provider'),
  form('provider', provider),
  dialog('remove', provider, 'Remove provider'),
]
const organisationStates = [
  form('create', 'Create organisation'),
  form('administrator', rowMenu, 'Add first administrator'),
  dialog('quotas', rowMenu, 'Quotas'),
]
const clustersStates = [
  form('sites', 'Sites'),
  dialog('filters', 'Saved filters'),
  dialog('columns', 'Columns'),
  form('change-labels', /^Select all /, 'Change labels'),
  dialog('move', /^Select all /, 'Move'),
]
const batchStates = [plain('cancel', 'Cancel batch')]
const notFound: Partial<PortalPage> = { isStandalone: true, allow: [/^response 404 GET \/nothing\/here$/] }
const newJobHeading = 'Run a script'

export const pages: readonly PortalPage[] = [
  page('dashboard', '/dashboard', 'Dashboard', dashboardStates),
  page('clusters', '/clusters', 'Clusters', clustersStates, { hasTextFields }),
  page('clusters-offline', '/clusters?status=Offline', 'Clusters', [form('save-filter', 'Saved filters')], {
    hasTextFields,
    isVariant,
  }),
  page('register', '/clusters/register', /^Register/, [form('new-site', 'New site')], { hasTextFields }),
  page('enrollment-keys', '/clusters/enrollment-keys', 'Enrollment keys', [form('create', 'Create enrollment key')]),
  page('relay-updates', '/clusters/relay-updates', 'Relay updates', [form('start', 'Update relays')]),
  page('cluster', ({ clusters }) => `/clusters/${clusters.healthy}`, /./, clusterStates),
  page('cluster-pending', ({ clusters }) => `/clusters/${clusters.pending}`, /./, [], { isVariant }),
  page('nodes', '/nodes', 'Nodes', [], { hasTextFields }),
  page('jobs', '/jobs', 'Jobs', [tab('batches', 'Batches')], { hasTextFields }),
  page('new-job', '/jobs/new', newJobHeading, [], { hasTextFields }),
  page('new-job-on-cluster', ({ clusters }) => `/jobs/new?clusterId=${clusters.healthy}`, newJobHeading, [nodesState], {
    hasTextFields,
    isVariant,
  }),
  page('new-job-selector', '/jobs/new?selector=env%3Dprod', newJobHeading, [], { hasTextFields, isVariant }),
  page('new-job-again', ({ jobs }) => `/jobs/new?from=${jobs.completed}`, newJobHeading, [], {
    hasTextFields,
    isVariant,
  }),
  page('job', ({ jobs }) => `/jobs/${jobs.completed}`, /./, [], { hasTextFields }),
  page('job-running', ({ jobs }) => `/jobs/${jobs.running}`, /./, [plain('cancel', 'Cancel job')], {
    hasTextFields,
    isVariant,
  }),
  page('batch', ({ batchId }) => `/jobs/batches/${batchId}`, /batch/i, [plain('retry', 'Retry failed jobs')]),
  page('batch-running', ({ openBatchId }) => `/jobs/batches/${openBatchId}`, /batch/i, batchStates, { isVariant }),
  page('modules', '/modules', 'Modules', [form('image', 'Install by image')], { hasTextFields }),
  page('module', ({ moduleId }) => `/modules?module=${moduleId}`, 'Modules', moduleStates),
  page('module-page', ({ moduleId }) => `/modules/${moduleId}`, /./),
  page('notifications', '/notifications', 'Notifications'),
  page('health', '/health', 'Health'),
  page('account', '/settings/account', 'Account', accountStates),
  page('account-tokens', '/settings/account?tab=tokens', 'Account', tokenStates, { isVariant }),
  page('users', '/settings/users', 'Users', userStates),
  page('webhooks', '/settings/webhooks', 'Webhooks', webhookStates),
  page('audit', '/settings/audit', /^Audit/, auditStates, { hasTextFields }),
  page('identity', '/settings/identity', /^Identity/, identityStates, { hasTextFields }),
  page('organisations', '/settings/organisations', 'Organisations', organisationStates),
  page('updates', '/settings/updates', 'Updates'),
  page('not-found', '/nothing/here', 'Page not found', [], notFound),
]

export const pathOf = ({ path }: PortalPage, ids: SeedIds): string => (typeof path === 'string' ? path : path(ids))

export const stateLocator = (page: Page, { role = 'dialog' }: PageState): Locator => page.getByRole(role).last()

const clickable = ['button', 'tab', 'menuitem', 'checkbox'] as const

export async function openState(page: Page, state: PageState): Promise<Locator> {
  for (const name of state.clicks) {
    const [first, ...others] = clickable.map((role) => page.getByRole(role, { name, exact: true }))
    await others
      .reduce((all, other) => all.or(other), first!)
      .first()
      .click()
  }
  const locator = stateLocator(page, state)
  await locator.waitFor()
  await waitForPage(page)
  return locator
}
