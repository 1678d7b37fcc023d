import type { Page } from 'playwright-core'
import { runRelayCommand } from '../relay-command.ts'
import { temporaryFolder } from '../temporary-folder.ts'
import { faultsOf, newContext } from './open.ts'
import { notSignedIn } from './pages.ts'
import { picture } from './shot.ts'
import { test as base } from './test.ts'

/** A wrong token is refused, and so is the request by which the wizard learns how to get the right one. */
const refused = /^answer 4(00|22) POST \/api\/v1\/setup\/complete$/

/**
 * A journey in one tab, on a platform that was never set up: one test follows another, and after one that fails the others are skipped.
 * `machine` has a folder, and a shell that relay commands are pasted into.
 */
export const test = base
  .extend('settings', { scope: 'file' }, { PLAT_MODULE_TICK_SECONDS: '1' })
  .override('api', { scope: 'file' }, ({ platform }) => platform.api())
  // oxlint-disable-next-line no-empty-pattern -- what a fixture needs is read off its pattern
  .extend('machine', { scope: 'file' }, async ({}, { onCleanup }) => {
    const resources = new AsyncDisposableStack()
    onCleanup(() => resources.disposeAsync())
    const folder = resources.use(await temporaryFolder()).path
    /** Pastes a relay command into a shell of a machine that has nothing else. */
    const paste = async (command: string) => {
      const { path } = resources.use(await temporaryFolder())
      resources.use(runRelayCommand(command, path))
    }
    return { folder, paste }
  })
  .extend('tab', { scope: 'file' }, async ({ browser, origin }, { onCleanup }) => {
    if (!browser) return undefined
    const context = await newContext(browser, origin, { as: 'nobody', allow: [...notSignedIn, refused] })
    onCleanup(() => context.close())
    return { page: await context.newPage(), hasFailed: false }
  })
  .extend('page', ({ tab, lacking, skip, task }, { onCleanup }): Page => {
    if (!tab) return skip(lacking)
    if (tab.hasFailed) return skip('An earlier step has failed.')
    onCleanup(async () => {
      tab.hasFailed = task.result?.state === 'fail' || faultsOf(tab.page).list().length > 0
      if (tab.hasFailed) await picture(tab.page, `failed-${task.name}`)
      faultsOf(tab.page).expectNone()
    })
    return tab.page
  })

/** What a browser keeps of the portal, beside its cookies. */
export const kept = (page: Page): Promise<unknown[]> =>
  page.evaluate(async () => {
    const { localStorage, sessionStorage, indexedDB, caches }: any = globalThis
    const stores = [...Object.keys(localStorage), ...Object.keys(sessionStorage)]
    return [...stores, ...(await indexedDB.databases()), ...(await caches.keys())]
  })
