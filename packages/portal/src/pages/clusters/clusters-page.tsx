import { useNavigate, useSearch } from '@tanstack/react-router'
import { MapPin, Plus } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import type { ClusterFilter } from './cluster-filter.ts'
import { ClusterFilters } from './cluster-filters.tsx'
import { ClusterList } from './cluster-list.tsx'
import { SitesDialog } from './sites-dialog.tsx'

/** The filter is part of the address. */
export function ClustersPage() {
  const filter = useSearch({ from: '/signed-in/clusters' })
  const navigate = useNavigate({ from: '/clusters' })
  const change = (search: ClusterFilter) => void navigate({ search, replace: true })
  return (
    <Page title="Clusters" actions={<Actions />}>
      <ClusterFilters filter={filter} onChange={change} />
      <ClusterList filter={filter} onClear={() => change({})} />
    </Page>
  )
}

function Actions() {
  const mayWrite = useHasPermission('clusters:write')
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <Button icon={MapPin} onClick={() => setIsOpen(true)}>
        Sites
      </Button>
      {mayWrite && (
        <ButtonLink to="/clusters/register" look="primary" icon={Plus}>
          Register cluster
        </ButtonLink>
      )}
      <SitesDialog isOpen={isOpen} onClose={() => setIsOpen(false)} />
    </>
  )
}
