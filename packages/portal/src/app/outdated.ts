import { remember, remembered } from './preferences.ts'

const name = 'reloaded'
const pauseSeconds = 60

/**
 * After an update the platform no longer has the files of the portal that a tab was loaded with: the first one that is missed
 * loads the portal anew, at the same address. Not where the platform does not answer at all, and not again within a minute:
 * then something else is wrong, and is shown.
 */
export function reloadOnceAfterUpdate(): void {
  addEventListener('vite:preloadError', () => {
    if (remembered(name) === undefined) void reloadWhereAnswered()
  })
}

async function reloadWhereAnswered(): Promise<void> {
  const response = await fetch('/', { method: 'HEAD', cache: 'no-store' }).catch(() => undefined)
  if (!response?.ok) return
  remember(name, 'yes', pauseSeconds)
  location.reload()
}
