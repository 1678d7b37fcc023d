import type { Locator, Page } from 'playwright-core'
import { settled } from './open.ts'

/** Something that a page shows when it is asked: a dialog, a menu, a tab, another mode. */
export interface PortalState {
  /** What its pictures are called, after the name of its page. */
  name: string
  /** What is pressed for it, one after the other: names of buttons, tabs, items of menus and such. */
  opens: readonly (string | RegExp)[]
  /** What is there then; a dialog where nothing is said. */
  shows?: 'dialog' | 'menu' | 'tabpanel' | 'group'
  /** It is offered only where there is no room beside the page. */
  isNarrow?: true
  /** It has fields for texts. */
  asks?: true
  /** It shows nothing that somebody has written, and asks for no text. */
  isPlain?: true
}

const tab = (name: string, label: string | RegExp): PortalState => ({ name, opens: [label], shows: 'tabpanel' })
const plain = (name: string, ...opens: (string | RegExp)[]): PortalState => ({ name, opens, isPlain: true })

const userMenu = /^Actions for /
/** The names of those that the seeds make. */
const provider = /directory$|__xss/

/** What the pages show when they are asked, by page. */
export const states = {
  shell: [
    { name: 'search', opens: ['Search'], asks: true },
    { name: 'navigation', opens: ['Open navigation'], isNarrow: true },
    { name: 'theme', opens: ['Theme'], shows: 'menu', isPlain: true },
    { name: 'user', opens: [/^Account of /], shows: 'menu' },
  ],
  dashboard: [{ name: 'arranging', opens: ['Edit dashboard', /^Move or resize /], shows: 'group', isPlain: true }],
  clusters: [
    { name: 'sites', opens: ['Sites'], asks: true },
    { name: 'filters', opens: ['Saved filters'] },
  ],
  savedFilters: [{ name: 'save-filter', opens: ['Saved filters'], asks: true }],
  register: [{ name: 'new-site', opens: ['New site'], asks: true }],
  cluster: [
    tab('nodes', /^Nodes \(/),
    tab('timeline', 'Timeline'),
    tab('jobs', 'Jobs'),
    { name: 'edit', opens: ['Edit cluster'], asks: true },
    plain('token', 'New enrollment token'),
    { name: 'remove', opens: ['Remove cluster'], asks: true },
  ],
  jobs: [tab('batches', 'Batches')],
  newJob: [{ name: 'nodes', opens: [/^All \d+ nodes$/], shows: 'group' }],
  runningJob: [plain('cancel', 'Cancel job')],
  batch: [plain('retry', 'Retry failed jobs')],
  openBatch: [plain('cancel', 'Cancel batch')],
  modules: [{ name: 'image', opens: ['Install by image'], asks: true }],
  module: [
    { name: 'version', opens: ['Install another version'], asks: true },
    { name: 'uninstall', opens: ['Uninstall'] },
  ],
  account: [
    { ...tab('password', 'Password'), asks: true },
    tab('sessions', 'Sessions'),
    plain('end-sessions', 'Sessions', 'End all other sessions'),
    tab('appearance', 'Appearance'),
  ],
  tokens: [
    { name: 'create', opens: ['Create API token'], asks: true },
    { name: 'revoke', opens: [/^Revoke /] },
  ],
  users: [
    { name: 'create', opens: ['Create user'], asks: true },
    { name: 'menu', opens: [userMenu], shows: 'menu' },
    { name: 'edit', opens: [userMenu, 'Edit'], asks: true },
    { name: 'remove', opens: [userMenu, 'Remove'] },
  ],
  webhooks: [
    { name: 'add', opens: ['Add webhook'], asks: true },
    { name: 'webhook', opens: [/^https:/], asks: true },
    { name: 'remove', opens: [/^https:/, 'Remove webhook'] },
  ],
  audit: [
    { name: 'add', opens: ['Add entry'], asks: true },
    { name: 'entry', opens: [/ \d+$/] },
    { name: 'verify', opens: ['Verify'] },
    { name: 'export', opens: ['Export'], shows: 'menu', isPlain: true },
  ],
  identity: [
    { name: 'add', opens: ['Add provider'], asks: true },
    { name: 'provider', opens: [provider], asks: true },
    { name: 'remove', opens: [provider, 'Remove provider'] },
  ],
  organisations: [
    { name: 'create', opens: ['Create organisation'], asks: true },
    { name: 'administrator', opens: [/^Add first administrator of /], asks: true },
  ],
} as const satisfies Record<string, readonly PortalState[]>

const pressed = ['button', 'tab', 'menuitem', 'checkbox'] as const

/** Where a page shows it, once it has been asked. */
export const shownBy = (page: Page, { shows = 'dialog' }: PortalState): Locator => page.getByRole(shows).last()

/** Brings a page to show something; answers where that is. */
export async function openState(page: Page, state: PortalState): Promise<Locator> {
  for (const name of state.opens) {
    const [first, ...others] = pressed.map((role) => page.getByRole(role, { name, exact: true }))
    await others
      .reduce((all, other) => all.or(other), first!)
      .first()
      .click()
  }
  const shown = shownBy(page, state)
  await shown.waitFor()
  await settled(page)
  return shown
}
