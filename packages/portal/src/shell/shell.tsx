import { Outlet, useRouterState } from '@tanstack/react-router'
import { Menu as MenuIcon } from 'lucide-react'
import { Suspense, useEffect, useRef, useState } from 'react'
import { IconButton } from '../ui/button.tsx'
import { Loading } from '../ui/state.tsx'
import { loadToasts } from '../ui/toast.tsx'
import { useLazyPart } from '../ui/use-lazy-part.ts'
import { OfflineBanner } from './offline-banner.tsx'
import { Navigation } from './navigation.tsx'
import styles from './shell.module.css'
import { TopBar } from './top-bar.tsx'

const loadDrawer = () => import('./drawer.tsx')

/** What stands around every page behind the sign-in. */
export function Shell() {
  const main = useFocusOnNavigation()
  useEffect(loadToasts, [])
  return (
    <div className={styles['shell']}>
      <a href="#main" className={styles['skip']}>
        Skip to the page
      </a>
      <TopBar menu={<DrawerButton />} />
      <aside className={styles['side']} aria-label="Navigation">
        <Navigation />
      </aside>
      <main id="main" ref={main} tabIndex={-1} className={styles['main']}>
        <OfflineBanner />
        <Suspense fallback={<Loading what="the page" />}>
          <Outlet />
        </Suspense>
      </main>
    </div>
  )
}

/** On a new page a reader begins at its top, wherever the focus was before. Changes of the search leave the focus alone. */
function useFocusOnNavigation() {
  const main = useRef<HTMLElement>(null)
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const shown = useRef(path)
  useEffect(() => {
    if (shown.current === path) return
    shown.current = path
    main.current?.focus({ preventScroll: true })
  }, [path])
  return main
}

/** Opens the navigation where there is no room for it beside the page. */
function DrawerButton() {
  const [isOpen, setIsOpen] = useState(false)
  const [drawer, fetchDrawer] = useLazyPart(loadDrawer, 'The navigation could not be opened')
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
