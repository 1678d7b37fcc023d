import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Blocks, FileBox, RefreshCw } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { withoutUndefined } from '../../lib/search.ts'
import { Button } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { showErrorToast, showToast } from '../../ui/toast.tsx'
import { ImageDialog } from './install-dialogs.tsx'
import { ModuleDetail } from './module-detail.tsx'
import { matchesFilter, ModuleFilters } from './module-filters.tsx'
import { ModuleTable } from './module-table.tsx'
import styles from './modules.module.css'
import { catalogQuery, useModules } from './use-modules.ts'

// The maximum number of modules to list. The search finds the others.
const shownLimit = 200

export function ModulesPage() {
  const search = useSearch({ from: '/signed-in/modules' })
  const navigate = useNavigate({ from: '/modules' })
  const { catalog, installed, entries } = useModules()
  const openOperation = (module: string, job: string) => void navigate({ search: (old) => ({ ...old, module, job }) })
  const closeDetail = () =>
    void navigate({ search: (old) => withoutUndefined({ search: old.search, show: old.show }), resetScroll: false })
  const matchingEntries = entries.filter((entry) => matchesFilter(entry, search))
  return (
    <Page
      title="Modules"
      lead={
        catalog.data?.scannedAt !== undefined && (
          <>
            Catalog scanned <Time at={catalog.data.scannedAt} />.
          </>
        )
      }
      actions={<PageActions onStarted={openOperation} />}
    >
      <ModuleFilters />
      {catalog.data?.problems.map((problem) => (
        <p key={problem} className={styles['warning']}>
          {problem}
        </p>
      ))}
      <Loaded query={installed} what="the modules">
        {() => (
          <Loaded query={catalog} what="the catalog">
            {() =>
              matchingEntries.length > 0 ? (
                <>
                  <ModuleTable entries={matchingEntries.slice(0, shownLimit)} onStarted={openOperation} />
                  {matchingEntries.length > shownLimit && (
                    <p className={styles['quiet']}>{matchingEntries.length - shownLimit} more. Search to find them.</p>
                  )}
                </>
              ) : (
                <NoModules isFiltered={entries.length > 0} />
              )
            }
          </Loaded>
        )}
      </Loaded>
      {search.module !== undefined && (
        <ModuleDetail
          key={search.module}
          moduleId={search.module}
          jobId={search.job}
          isListed={installed.data !== undefined && catalog.data !== undefined}
          entry={entries.find(({ id }) => id === search.module)}
          onStarted={(jobId) => openOperation(search.module ?? '', jobId)}
          onClose={closeDetail}
        />
      )}
    </Page>
  )
}

function PageActions({ onStarted }: { onStarted: (moduleId: string, jobId: string) => void }) {
  const [isOpen, setIsOpen] = useState(false)
  const { isScanning, scan } = useScan()
  if (!useHasPermission('modules:install')) return null
  return (
    <>
      <Button icon={RefreshCw} isBusy={isScanning} onClick={scan}>
        Scan for modules
      </Button>
      <Button icon={FileBox} onClick={() => setIsOpen(true)}>
        Install by image
      </Button>
      <ImageDialog
        isOpen={isOpen}
        onClose={() => setIsOpen(false)}
        onStarted={({ moduleId, jobId }) => onStarted(moduleId, jobId)}
      />
    </>
  )
}

const NoModules = ({ isFiltered }: { isFiltered: boolean }) =>
  isFiltered ? (
    <EmptyState icon={Blocks} title="No matching modules">
      Change the search or show all modules.
    </EmptyState>
  ) : (
    <EmptyState icon={Blocks} title="No modules yet">
      Push a module to a configured source, or install one by its image.
    </EmptyState>
  )

const timeoutMs = 180_000

/**
 * Returns a function that starts a scan. The catalog is polled until the scan has finished, for at most three minutes.
 */
export function useScan(): { isScanning: boolean; scan: () => void } {
  /** `before` is the time of the last scan before the requested one. */
  const [request, setRequest] = useState<{ before: string | undefined }>()
  const { data } = useQuery(catalogQuery)
  // The cached catalog may be older than the previous scan, so the times are compared.
  const isScanning = request !== undefined && (data?.scannedAt ?? '') <= (request.before ?? '')
  useQuery({ ...catalogQuery, ...(isScanning && { refetchInterval: pollEvery(1) }) })
  const isDone = request !== undefined && !isScanning
  const count = data?.totalCount ?? 0

  useEffect(() => {
    if (isDone) showToast('The catalog is up to date', `${count} ${count === 1 ? 'module' : 'modules'}.`)
    // The toast is shown once per scan, even if the count changes later.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [isDone])

  useEffect(() => {
    if (!isScanning) return undefined
    const timer = setTimeout(() => {
      setRequest(undefined)
      showToast('The scan is taking longer than expected', 'The catalog updates when it completes.')
    }, timeoutMs)
    return () => clearTimeout(timer)
  }, [isScanning])

  const scan = () =>
    void unwrap(api.POST('/api/v1/modules/catalog/scan')).then(
      ({ scannedAt }) => setRequest({ before: scannedAt }),
      (error: unknown) => showErrorToast('Failed to start the scan', error),
    )
  return { isScanning, scan }
}
