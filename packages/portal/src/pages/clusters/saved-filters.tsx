import { queryOptions, useQuery } from '@tanstack/react-query'
import { Bookmark, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, unwrap, type Schemas, expectNoBody } from '../../api/client.ts'
import { setQueryData } from '../../api/query.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { Loaded } from '../../ui/state.tsx'
import { showToast, showErrorToast } from '../../ui/toast.tsx'
import { type ClusterFilter, filterOf, filterText, isFiltered } from './cluster-filter.ts'
import styles from './clusters.module.css'

type SavedFilter = Schemas['SavedFilter']

// Distinguishes the saved filters of this list from those of other lists.
const context = 'clusters'

export const isClusterFilter = (savedFilter: SavedFilter): boolean => savedFilter.context === context

export const savedFiltersQuery = queryOptions({
  queryKey: ['saved-filters'],
  queryFn: async () => (await unwrap(api.GET('/api/v1/users/me/saved-filters'))).items,
  staleTime: 60_000,
})

interface SavedFiltersProps {
  filter: ClusterFilter
  onChange: (filter: ClusterFilter) => void
}

export function SavedFilters({ filter, onChange }: SavedFiltersProps) {
  const [isOpen, setIsOpen] = useState(false)
  const close = () => setIsOpen(false)
  return (
    <>
      <Button icon={Bookmark} onClick={() => setIsOpen(true)}>
        Saved filters
      </Button>
      <Dialog isOpen={isOpen} onClose={close} title="Saved filters">
        <FilterList
          onChoose={(chosenFilter) => {
            onChange(chosenFilter)
            close()
          }}
        />
        {isFiltered(filter) ? (
          <SaveForm filter={filter} onSaved={close} />
        ) : (
          <p className={styles['quiet']}>Set filters first, then save them under a name.</p>
        )}
      </Dialog>
    </>
  )
}

function FilterList({ onChoose }: { onChoose: (filter: ClusterFilter) => void }) {
  const query = useQuery(savedFiltersQuery)
  return (
    <Loaded query={query} what="saved filters">
      {(savedFilters) => (
        <ul className={styles['entries']} aria-label="Saved filters">
          {savedFilters.filter(isClusterFilter).map((each) => (
            <li key={each.id}>
              <Button variant="quiet" className={styles['entry']} onClick={() => onChoose(filterOf(each.filter))}>
                <strong>{each.name}</strong>
                <span className={styles['quiet']}>{filterText(filterOf(each.filter))}</span>
              </Button>
              <RemoveFilter saved={each} />
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  )
}

function RemoveFilter({ saved: { id, name } }: { saved: SavedFilter }) {
  const [isBusy, setIsBusy] = useState(false)
  const remove = async () => {
    if (isBusy) return
    setIsBusy(true)
    try {
      await expectNoBody(api.DELETE('/api/v1/users/me/saved-filters/{id}', { params: { path: { id } } }))
      await setQueryData(savedFiltersQuery.queryKey, (knownFilters) => knownFilters.filter((each) => each.id !== id))
    } catch (error) {
      showErrorToast(`Failed to remove the filter ${name}`, error)
      setIsBusy(false)
    }
  }
  return <IconButton label={`Remove filter ${name}`} icon={Trash2} isBusy={isBusy} onClick={() => void remove()} />
}

const SaveForm = ({ filter, onSaved }: { filter: ClusterFilter; onSaved: () => void }) => (
  <Form
    submitLabel="Save filter"
    onSubmit={async ({ name = '' }) => {
      const body = { name, context, filter: { ...filter } }
      const savedFilter = await unwrap(api.POST('/api/v1/users/me/saved-filters', { body }))
      await setQueryData(savedFiltersQuery.queryKey, (knownFilters) => [savedFilter, ...knownFilters])
      showToast('Filter saved', name)
      onSaved()
    }}
  >
    <TextField name="name" label="Save current filters as" hint={filterText(filter)} required maxLength={100} />
  </Form>
)
