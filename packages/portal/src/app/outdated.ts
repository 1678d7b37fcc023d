import { setPreference, getPreference } from '../lib/preferences.ts'

const name = 'reloaded'
const pauseSeconds = 60

/**
 * Reloads the portal if a file of its version no longer exists after an update. It does not reload while the platform
 * is down, and reloads at most once a minute.
 */
export function reloadOnceAfterUpdate(): void {
  addEventListener('vite:preloadError', () => {
    if (getPreference(name) === undefined) void reloadIfReachable()
  })
}

async function reloadIfReachable(): Promise<void> {
  const response = await fetch('/', { method: 'HEAD', cache: 'no-store' }).catch(() => undefined)
  if (!response?.ok) return
  setPreference(name, 'yes', pauseSeconds)
  location.reload()
}
