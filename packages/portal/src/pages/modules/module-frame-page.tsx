import { useQuery } from '@tanstack/react-query'
import { useLocation, useParams } from '@tanstack/react-router'
import { Compass, Info } from 'lucide-react'
import { navigationQuery, useHasPermission } from '../../api/account.ts'
import { isApiError } from '../../api/api-error.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { ButtonLink } from '../../ui/button.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { Page, useTitle } from '../../ui/page.tsx'
import { EmptyState, Loading } from '../../ui/state.tsx'
import { isOwnPath } from './bridge/own-path.ts'
import { ModuleFrame } from './module-frame.tsx'
import styles from './module-frame.module.css'
import { moduleQuery } from './use-modules.ts'
import { pageQuery } from './use-page.ts'

/** The page of a module in a frame. The module handles paths below it. */
export function ModuleFramePage() {
  const { moduleId } = useParams({ from: '/signed-in/modules/$moduleId/$' })
  const address = useLocation({ select: ({ pathname, searchStr, hash }) => ({ pathname, searchStr, hash }) })
  const path = address.pathname + address.searchStr
  const isOwn = isOwnPath(path, [`/modules/${moduleId}`])
  const page = useQuery({ ...pageQuery(path), enabled: isOwn })
  const mayRead = useHasPermission('modules:read')
  const module = useQuery({ ...moduleQuery(moduleId), enabled: isOwn && mayRead })
  const name = useNameOf(moduleId, module.data?.name)
  useTitle(name)
  if (!isOwn || isApiError(page.error, 'route_not_found') || isApiError(module.error, 'module_not_found'))
    return <NoModule />
  const isReady = page.isSuccess && !module.isLoading
  return (
    <div className={styles['page']}>
      <header className={styles['head']}>
        <h1>{name}</h1>
        {module.data && <StatusBadge status={module.data.health} />}
        {module.data && (
          <ButtonLink to="/modules" search={{ module: moduleId }} icon={Info} look="quiet">
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
            src={address.hash === '' ? path : `${path}#${address.hash}`}
            title={`Page of ${name}`}
            moduleId={moduleId}
            apiBasePath={module.data?.apiBasePath}
          />
        )}
      </div>
    </div>
  )
}

/** The module's name; from the navigation if the user may not read modules. */
function useNameOf(moduleId: string, known: string | undefined): string {
  const { data } = useQuery(navigationQuery)
  return known ?? data?.items.find(({ source }) => source === `module:${moduleId}`)?.label ?? moduleId
}

const NoModule = () => (
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
