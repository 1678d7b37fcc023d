import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Plus, Webhook as WebhookIcon } from 'lucide-react'
import { useState } from 'react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { Button, TextButton } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { CreateWebhook } from './create-webhook.tsx'
import { webhooksKey } from './deliveries.tsx'
import { WebhookDialog, WebhookState } from './webhook-dialog.tsx'
import { subscriptionText } from './webhook-fields.tsx'

type Webhook = Schemas['Webhook']

const columnsOf = (open: (id: string) => void): Column<Webhook>[] => [
  {
    title: 'Address',
    cell: ({ id, url }) => <TextButton onClick={() => open(id)}>{url}</TextButton>,
  },
  { title: 'State', cell: (webhook) => <WebhookState webhook={webhook} />, isNarrow: true },
  { title: 'Events', cell: ({ events }) => <EventNames names={events} /> },
  { title: 'Added', cell: ({ createdAt }) => <Time at={createdAt} />, isNarrow: true },
]

const EventNames = ({ names }: { names: readonly string[] }) => (
  <>
    {names.slice(0, 3).map(subscriptionText).join(', ')}
    {names.length > 3 && ` and ${names.length - 3} more`}
  </>
)

export const WebhooksPage = () => (
  <RequirePermission permission="users:admin" title="Webhooks">
    <WebhookList />
  </RequirePermission>
)

function WebhookList() {
  const { webhook: webhookId } = useSearch({ from: '/signed-in/settings/webhooks' })
  const navigate = useNavigate({ from: '/settings/webhooks' })
  const [isCreating, setIsCreating] = useState(false)
  const [columns] = useState(() => columnsOf((webhook) => void navigate({ search: { webhook } })))
  const query = useQuery({
    queryKey: webhooksKey,
    queryFn: () => unwrap(api.GET('/api/v1/webhooks')),
    refetchInterval: pollEvery(15),
  })
  const create = (
    <Button variant="primary" icon={Plus} onClick={() => setIsCreating(true)}>
      Add webhook
    </Button>
  )
  return (
    <Page
      title="Webhooks"
      lead="Posts events of your organisation to an address, signed according to Standard Webhooks."
      actions={create}
    >
      <Loaded query={query} what="webhooks">
        {({ items }) => (
          <>
            {items.length > 0 && <Table label="Webhooks" columns={columns} rows={items} keyOf={({ id }) => id} />}
            {items.length === 0 && (
              <EmptyState icon={WebhookIcon} title="No webhooks yet" action={create}>
                Add an address to receive job, cluster and module events.
              </EmptyState>
            )}
            <WebhookDialog
              webhook={items.find(({ id }) => id === webhookId)}
              onClose={() => void navigate({ search: {} })}
            />
          </>
        )}
      </Loaded>
      {isCreating && <CreateWebhook onClose={() => setIsCreating(false)} />}
    </Page>
  )
}
