import { useQuery } from '@tanstack/react-query'
import { useLocation, useParams, useRouter } from '@tanstack/react-router'
import { Compass, Info } from 'lucide-react'
import { type RefObject, useEffect, useRef, useState } from 'react'
import { navigationQuery, useHasPermission } from '../../api/account.ts'
import { isApiError } from '../../api/api-error.ts'
import { fetchInSession } from '../../api/session.ts'
import { useIsDark } from '../../lib/theme.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { ButtonLink } from '../../ui/button.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { Page, useTitle } from '../../ui/page.tsx'
import { EmptyState, Loading } from '../../ui/state.tsx'
import { type Bridge, openBridge } from './bridge/bridge.ts'
import { isModulePath } from './bridge/module-path.ts'
import styles from './module-frame.module.css'
import { moduleQuery, pageQuery } from './use-modules.ts'

/** The page of a module in a frame. The module handles all paths below `/modules/$moduleId`. */
export function ModuleFramePage() {
  const { moduleId } = useParams({ from: '/signed-in/modules/$moduleId/$' })
  // Unlike `pathname`, `publicHref` is not decoded.
  const address = useLocation({ select: ({ publicHref }) => publicHref })
  const path = address.replace(/#.*/s, '')
  const isModuleAddress = isModulePath(path, [`/modules/${moduleId}`])
  const page = useQuery({ ...pageQuery(path), enabled: isModuleAddress })
  const mayRead = useHasPermission('modules:read')
  const module = useQuery({ ...moduleQuery(moduleId), enabled: isModuleAddress && mayRead })
  const name = useNameOf(moduleId, module.data?.name)
  useTitle(name)
  if (!isModuleAddress || isApiError(page.error, 'route_not_found') || isApiError(module.error, 'module_not_found'))
    return <ModuleNotFound />
  const isReady = page.isSuccess && !module.isLoading
  return (
    <div className={styles['page']}>
      <header className={styles['head']}>
        <h1>{name}</h1>
        {module.data && <StatusBadge status={module.data.health} />}
        {module.data && (
          <ButtonLink to="/modules" search={{ module: moduleId }} icon={Info} variant="quiet">
            Details
          </ButtonLink>
        )}
      </header>
      <div className={styles['body']}>
        {page.error !== null && (
          <div className={styles['note']}>
            <ErrorNote error={page.error} onRetry={() => void page.refetch()} />
          </div>
        )}
        {page.error === null && !isReady && <Loading what="the module’s page" />}
        {isReady && (
          <ModuleFrame
            key={path}
            src={address}
            title={`Page of ${name}`}
            moduleId={moduleId}
            apiBasePath={module.data?.apiBasePath}
          />
        )}
      </div>
    </div>
  )
}

// Users without `modules:read` see the label of the navigation entry.
function useNameOf(moduleId: string, nameOfModule: string | undefined): string {
  const { data } = useQuery(navigationQuery)
  return nameOfModule ?? data?.items.find(({ source }) => source === `module:${moduleId}`)?.label ?? moduleId
}

const ModuleNotFound = () => (
  <Page title="Module not found">
    <EmptyState
      icon={Compass}
      title="This module is not installed"
      action={<ButtonLink to="/modules">All modules</ButtonLink>}
    >
      It was uninstalled, or its installation is still running.
    </EmptyState>
  </Page>
)

interface ModuleFrameProps {
  src: string
  title: string
  moduleId: string
  apiBasePath: string | undefined
}

/**
 * An isolated frame. Its scripts have an opaque origin and cannot open windows or navigate the portal. They use the
 * platform through the bridge.
 */
export function ModuleFrame({ src, title, moduleId, apiBasePath }: ModuleFrameProps) {
  const frame = useRef<HTMLIFrameElement>(null)
  const [isLoaded, setIsLoaded] = useState(false)
  useBridge(frame, { moduleId, apiBasePath })
  return (
    <>
      <iframe
        ref={frame}
        src={src}
        title={title}
        sandbox="allow-scripts allow-forms"
        referrerPolicy="no-referrer"
        className={styles['frame']}
        onLoad={() => setIsLoaded(true)}
      />
      {!isLoaded && (
        <div className={styles['over']}>
          <Loading what="the module’s page" />
        </div>
      )}
    </>
  )
}

interface BridgeSettings {
  moduleId: string
  /** Undefined if the user may not read modules. Requests are then limited to the paths of the module's pages. */
  apiBasePath: string | undefined
}

/**
 * Connects the page in a frame to the portal. Messages are accepted only from the window of the frame, which other
 * windows cannot forge.
 */
export function useBridge(frame: RefObject<HTMLIFrameElement | null>, { moduleId, apiBasePath }: BridgeSettings): void {
  const router = useRouter()
  const theme = useIsDark() ? 'dark' : 'light'
  const currentTheme = useRef<'light' | 'dark'>(theme)
  const bridge = useRef<Bridge>(undefined)

  useEffect(() => {
    currentTheme.current = theme
    bridge.current?.sendContext()
  }, [theme])

  useEffect(() => {
    const connection = openBridge({
      moduleId,
      origin: location.origin,
      basePaths: [`/modules/${moduleId}`, ...(apiBasePath === undefined ? [] : [apiBasePath])],
      fetch: fetchInSession,
      context: () => ({ theme: currentTheme.current, locale: navigator.language, timeZone: timeZone() }),
      // A sandboxed page has no origin that could be the target. The content security policy allows only frames of this
      // platform.
      send: (message) => frame.current?.contentWindow?.postMessage(message, '*'),
      open: (path) => router.history.push(path),
    })
    bridge.current = connection
    const onMessage = ({ source, origin, data }: MessageEvent) => {
      if (source !== null && source === frame.current?.contentWindow && origin === 'null') connection.receive(data)
    }
    addEventListener('message', onMessage)
    return () => {
      removeEventListener('message', onMessage)
      connection.end()
    }
  }, [frame, router, moduleId, apiBasePath])
}

const timeZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone
