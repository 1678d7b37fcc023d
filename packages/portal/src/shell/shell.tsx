import { Outlet, useRouter, useRouterState } from '@tanstack/react-router'
import { CloudOff, Menu as MenuIcon } from 'lucide-react'
import { Suspense, useEffect, useRef, useState } from 'react'
import { useIsOffline } from '../api/account.ts'
import { queries } from '../api/query.ts'
import { IconButton } from '../ui/button.tsx'
import { useLazyPart } from '../ui/hooks.ts'
import { Loading } from '../ui/state.tsx'
import { loadToasts } from '../ui/toast.tsx'
import { Navigation } from './navigation.tsx'
import styles from './shell.module.css'
import { DemoBanner } from './standalone.tsx'
import { TopBar } from './top-bar.tsx'

const loadDrawer = () => import('./drawer.tsx')

export function Shell() {
  const main = useFocusOnNavigation()
  useEffect(loadToasts, [])
  return (
    <div className={styles['shell']}>
      <a href="#main" className={styles['skip']}>
        Skip to content
      </a>
      <TopBar menu={<DrawerButton />} />
      <aside className={styles['side']} aria-label="Navigation">
        <Navigation />
      </aside>
      <main id="main" ref={main} tabIndex={-1} className={styles['main']}>
        <DemoBanner />
        <OfflineBanner />
        <Suspense fallback={<Loading what="the page" />}>
          <Outlet />
        </Suspense>
      </main>
    </div>
  )
}

// A new page receives the focus at its top. A change of only the search parameters keeps the focus.
function useFocusOnNavigation() {
  const main = useRef<HTMLElement>(null)
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const lastPath = useRef(path)
  useEffect(() => {
    if (lastPath.current === path) return
    lastPath.current = path
    main.current?.focus({ preventScroll: true })
  }, [path])
  return main
}

function DrawerButton() {
  const [isOpen, setIsOpen] = useState(false)
  const [drawer, fetchDrawer] = useLazyPart(loadDrawer, 'Failed to open the navigation')
  const open = () => {
    setIsOpen(true)
    fetchDrawer()
  }
  return (
    <>
      <IconButton
        label="Open navigation"
        icon={MenuIcon}
        className={styles['menu']}
        aria-haspopup="dialog"
        aria-expanded={isOpen && drawer !== undefined}
        onClick={open}
      />
      {isOpen && drawer && <drawer.Drawer onClose={() => setIsOpen(false)} />}
    </>
  )
}

/** Shown while the platform does not respond. Afterwards, failed queries are refetched and the routes are reloaded. */
export function OfflineBanner() {
  const isOffline = useIsOffline()
  const wasOffline = useRef(false)
  const router = useRouter()
  useEffect(() => {
    if (wasOffline.current && !isOffline) {
      void queries.refetchQueries({ type: 'active', predicate: ({ state }) => state.status === 'error' })
      void router.invalidate()
    }
    wasOffline.current = isOffline
  }, [isOffline, router])
  return (
    <div role="status" className={styles['away']}>
      {isOffline && (
        <p>
          <CloudOff size={16} aria-hidden /> The platform is not responding. Data may be outdated. Retrying
          automatically.
        </p>
      )}
    </div>
  )
}
