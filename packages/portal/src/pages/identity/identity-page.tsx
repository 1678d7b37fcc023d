import { useNavigate, useSearch } from '@tanstack/react-router'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { Button, TextButton } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { PublicUrlForm } from '../setup/public-url-form.tsx'
import { AddProvider } from './add-provider.tsx'
import { ConsentNote } from './consent-note.tsx'
import { ProviderDialog } from './provider-dialog.tsx'
import { type Provider, providerTypeSpecs, signInLabelOf } from './provider-types.ts'
import { ProviderStatus, useProviders } from './providers.tsx'

const columnsOf = (open: (id: string) => void): Column<Provider>[] => [
  {
    title: 'Name',
    cell: ({ id, displayName }) => <TextButton onClick={() => open(id)}>{displayName}</TextButton>,
  },
  { title: 'Type', cell: ({ type }) => providerTypeSpecs[type].label },
  { title: 'Status', cell: ({ status }) => <ProviderStatus status={status} />, isNarrow: true },
  {
    title: 'Sign-in page',
    cell: ({ enabled, type, displayName }) => (enabled ? signInLabelOf(type, displayName) : 'Not offered'),
  },
]

export const IdentityPage = () => (
  <RequirePermission permission="platform:admin" title="Identity providers">
    <ProviderList />
  </RequirePermission>
)

function ProviderList() {
  const { provider: chosenId, consent, error } = useSearch({ from: '/signed-in/settings/identity' })
  const navigate = useNavigate({ from: '/settings/identity' })
  const [isAdding, setIsAdding] = useState(false)
  // The page keeps the input of its form, so there is no question.
  const show = (provider?: string, replace = false) =>
    void navigate({ search: provider === undefined ? {} : { provider }, replace, ignoreBlocker: true })
  const [columns] = useState(() => columnsOf(show))
  const query = useProviders()
  const find = (items: readonly Provider[]) => items.find(({ id }) => id === chosenId)
  const addButton = (
    <Button variant="primary" icon={Plus} onClick={() => setIsAdding(true)}>
      Add provider
    </Button>
  )
  return (
    <Page
      title="Identity providers"
      lead="Let users sign in with external accounts. A first sign-in creates a user in your organisation."
      actions={addButton}
    >
      <Loaded query={query} what="identity providers">
        {({ items }) => (
          <>
            {consent !== undefined && (
              <ConsentNote
                consent={consent}
                error={error}
                provider={find(items)}
                onDismiss={() => show(undefined, true)}
              />
            )}
            {items.length > 0 && (
              <Table label="Identity providers" columns={columns} rows={items} keyOf={({ id }) => id} />
            )}
            {items.length === 0 && (
              <EmptyState icon={KeyRound} title="No identity providers yet">
                Add a provider so that users can sign in with their existing accounts.
              </EmptyState>
            )}
            <Card title="Public address">
              <PublicUrlForm />
            </Card>
            <ProviderDialog
              // The dialog would cover the result of the consent request.
              provider={consent === undefined ? find(items) : undefined}
              onClose={() => show()}
            />
            {isAdding && (
              <AddProvider
                providers={items}
                onClose={() => setIsAdding(false)}
                onAdded={(id) => {
                  setIsAdding(false)
                  show(id)
                }}
              />
            )}
          </>
        )}
      </Loaded>
    </Page>
  )
}
