import { useNavigate, useSearch } from '@tanstack/react-router'
import { Blocks, FileBox, RefreshCw } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { defined } from '../../lib/search.ts'
import { Button } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { matchesFilter } from './filter.ts'
import { ImageDialog } from './image-dialog.tsx'
import { ModuleDetail } from './module-detail.tsx'
import { ModuleFilters } from './module-filters.tsx'
import { ModuleTable } from './module-table.tsx'
import styles from './modules.module.css'
import { useModules } from './use-modules.ts'
import { useScan } from './use-scan.ts'

/** Search finds the others. */
const shownLimit = 200

export function ModulesPage() {
  const search = useSearch({ from: '/signed-in/modules' })
  const navigate = useNavigate({ from: '/modules' })
  const { catalog, installed, entries } = useModules()
  const follow = (module: string, job: string) => void navigate({ search: (old) => ({ ...old, module, job }) })
  const leave = () =>
    void navigate({ search: (old) => defined({ search: old.search, show: old.show }), resetScroll: false })
  const wanted = entries.filter((entry) => matchesFilter(entry, search))
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
      actions={<PageActions onBegun={follow} />}
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
              wanted.length > 0 ? (
                <>
                  <ModuleTable entries={wanted.slice(0, shownLimit)} onBegun={follow} />
                  {wanted.length > shownLimit && (
                    <p className={styles['quiet']}>{wanted.length - shownLimit} more. Search to find them.</p>
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
          onBegun={(jobId) => follow(search.module ?? '', jobId)}
          onClose={leave}
        />
      )}
    </Page>
  )
}

function PageActions({ onBegun }: { onBegun: (moduleId: string, jobId: string) => void }) {
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
        onBegun={({ moduleId, jobId }) => onBegun(moduleId, jobId)}
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
