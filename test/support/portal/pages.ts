import { isLong } from '../long.ts'
import type { Places } from './seed.ts'
import { states, type PortalState } from './states.ts'

/** A page of the portal, as the tests that look at all of them need to know it. */
export interface PortalPage {
  /** What its pictures are called. */
  name: string
  path: string | ((places: Places) => string)
  /** Its one heading of the first level, which the title of the tab begins with. */
  heading: string | RegExp
  /** Answers that it is right to get there. */
  allow?: RegExp[]
  /** Nothing of the portal stands around it. */
  isAlone?: true
  /** A page that another one of these shows already, which holds something else: left out where not all is tried (see long.ts). */
  isAgain?: true
  /** It has fields for texts. */
  asks?: true
  /** Where not all is tried (see long.ts), it and such of its states stand for the kinds of fields that the portal has. */
  types?: readonly string[]
  /** What it shows when it is asked. */
  states?: readonly PortalState[]
}

/** The portal before setup: its other steps cannot be reached by an address. */
export const setupPages: readonly PortalPage[] = ['welcome', 'platform'].map((step) => ({
  name: `setup-${step}`,
  path: `/setup?step=${step}`,
  heading: 'Set up the platform',
  // A request without a token tells how to get one.
  allow: [/^answer 422 POST \/api\/v1\/setup\/complete$/],
}))

/** What a portal answers that nobody has signed in to: it looks, and tries to renew a session. */
export const notSignedIn = [
  /^answer 401 (GET \/api\/v1\/(auth\/me|portal\/navigation)|POST \/api\/v1\/auth\/session\/refresh)$/,
]

/** The portal for whoever has not signed in. */
export const publicPages: readonly PortalPage[] = [
  { name: 'sign-in', path: '/sign-in', heading: 'Sign in', allow: notSignedIn, asks: true },
]

/** The portal for an administrator. */
export const pages: readonly PortalPage[] = [
  {
    name: 'dashboard',
    path: '/dashboard',
    heading: 'Dashboard',
    types: ['search'],
    states: [...states.shell, ...states.dashboard],
  },
  { name: 'clusters', path: '/clusters', heading: 'Clusters', asks: true, types: ['sites'], states: states.clusters },
  {
    name: 'clusters-offline',
    isAgain: true,
    path: '/clusters?status=Offline',
    heading: 'Clusters',
    asks: true,
    states: states.savedFilters,
  },
  { name: 'register', path: '/clusters/register', heading: /^Register/, asks: true, states: states.register },
  {
    name: 'cluster',
    path: ({ clusters }) => `/clusters/${clusters.healthy}`,
    heading: /./,
    states: states.cluster,
  },
  { name: 'cluster-pending', isAgain: true, path: ({ clusters }) => `/clusters/${clusters.pending}`, heading: /./ },
  { name: 'jobs', path: '/jobs', heading: 'Jobs', states: states.jobs },
  { name: 'new-job', path: '/jobs/new', heading: 'Run a script', asks: true, types: [] },
  {
    name: 'new-job-there',
    isAgain: true,
    path: ({ clusters }) => `/jobs/new?clusterId=${clusters.healthy}`,
    heading: 'Run a script',
    asks: true,
    states: states.newJob,
  },
  {
    name: 'new-job-again',
    isAgain: true,
    path: ({ jobs }) => `/jobs/new?from=${jobs.completed}`,
    heading: 'Run a script',
    asks: true,
  },
  { name: 'job', path: ({ jobs }) => `/jobs/${jobs.completed}`, heading: /./ },
  {
    name: 'job-running',
    isAgain: true,
    path: ({ jobs }) => `/jobs/${jobs.running}`,
    heading: /./,
    states: states.runningJob,
  },
  { name: 'batch', path: ({ batchId }) => `/jobs/batches/${batchId}`, heading: /batch/i, states: states.batch },
  {
    name: 'batch-running',
    isAgain: true,
    path: ({ openBatchId }) => `/jobs/batches/${openBatchId}`,
    heading: /batch/i,
    states: states.openBatch,
  },
  { name: 'modules', path: '/modules', heading: 'Modules', asks: true, states: states.modules },
  { name: 'module', path: ({ moduleId }) => `/modules?module=${moduleId}`, heading: 'Modules', states: states.module },
  { name: 'module-page', path: ({ moduleId }) => `/modules/${moduleId}`, heading: /./ },
  { name: 'notifications', path: '/notifications', heading: 'Notifications' },
  { name: 'health', path: '/health', heading: 'Health' },
  { name: 'account', path: '/settings/account', heading: 'Account', states: states.account },
  {
    name: 'account-tokens',
    isAgain: true,
    path: '/settings/account?tab=tokens',
    heading: 'Account',
    states: states.tokens,
  },
  { name: 'users', path: '/settings/users', heading: 'Users', types: ['create'], states: states.users },
  { name: 'webhooks', path: '/settings/webhooks', heading: 'Webhooks', states: states.webhooks },
  { name: 'audit', path: '/settings/audit', heading: /^Audit/, asks: true, states: states.audit },
  { name: 'identity', path: '/settings/identity', heading: /^Identity/, types: ['add'], states: states.identity },
  { name: 'organisations', path: '/settings/organisations', heading: 'Organisations', states: states.organisations },
  { name: 'updates', path: '/settings/updates', heading: 'Updates' },
  {
    name: 'not-found',
    path: '/nothing/here',
    heading: 'Page not found',
    isAlone: true,
    allow: [/^answer 404 GET \/nothing\/here$/],
  },
]

/** The pages that are tried: each once where not all is, see long.ts. */
export const triedPages = pages.filter(({ isAgain }) => isLong || !isAgain)

/** Where a page is, on a platform that holds these. */
export const pathOf = ({ path }: PortalPage, places: Places): string => (typeof path === 'string' ? path : path(places))
