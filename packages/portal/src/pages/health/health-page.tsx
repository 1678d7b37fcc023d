import { useQuery } from '@tanstack/react-query'
import { HeartPulse, RotateCw } from 'lucide-react'
import { ApiError } from '../../api/api-error.ts'
import { api, type Schemas } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { language } from '../../lib/language.ts'
import { Badge, StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'

type Check = Schemas['HealthCheck']

export function HealthPage() {
  const query = useReadiness()
  const { data, dataUpdatedAt, isFetching, refetch } = query
  return (
    <Page
      title="Health"
      badge={data && <StatusBadge status={data.aggregate} />}
      lead={
        data && (
          <>
            {statusMeanings[data.aggregate]} Checked <Time at={new Date(dataUpdatedAt).toISOString()} />, every ten
            seconds while this page is visible.
          </>
        )
      }
      actions={
        <Button icon={RotateCw} isBusy={isFetching} onClick={() => void refetch()}>
          Check now
        </Button>
      }
    >
      <Loaded query={query} what="the health">
        {({ checks }) => (
          <Card title="Checks">
            {checks.length > 0 ? (
              <Table label="Checks" columns={columns} rows={worstFirst(checks)} keyOf={keyOf} />
            ) : (
              <EmptyState icon={HeartPulse} title="No health checks">
                The platform responds but reports no checks.
              </EmptyState>
            )}
          </Card>
        )}
      </Loaded>
      <Card title="Tags">
        <DescriptionList items={tags} />
      </Card>
    </Page>
  )
}

const statusMeanings: Record<Schemas['Readiness']['aggregate'], string> = {
  Healthy: 'All required checks pass.',
  Degraded: 'The platform works with limitations.',
  Unhealthy: 'A critical check fails.',
}

const tags = [
  ['critical', 'Required. If it is Unhealthy, the platform is Unhealthy.'],
  ['degradable', 'Optional. If it fails, the platform is Degraded.'],
  ['informational', 'Shown for information only.'],
] as const

const rank: Record<Check['status'], number> = { Unhealthy: 0, Degraded: 1, Healthy: 2 }
const keyOf = ({ source, name }: Check) => `${source} ${name}`
// Checks of the platform come before those of modules with the same status.
const worstFirst = (checks: readonly Check[]) =>
  checks.toSorted(
    (a, b) =>
      rank[a.status] - rank[b.status] ||
      Number(b.source === 'platform') - Number(a.source === 'platform') ||
      keyOf(a).localeCompare(keyOf(b)),
  )

const milliseconds = new Intl.NumberFormat(language, { style: 'unit', unit: 'millisecond', maximumFractionDigits: 1 })

const columns = [
  { title: 'Status', isNarrow: true, cell: ({ status }: Check) => <StatusBadge status={status} /> },
  {
    title: 'Check',
    cell: ({ name, description }: Check) => (
      <div>
        <strong>{name}</strong>
        <div>{description}</div>
      </div>
    ),
  },
  { title: 'Source', cell: ({ source }: Check) => <code>{source}</code> },
  {
    title: 'Tags',
    cell: ({ tags: checkTags }: Check) =>
      checkTags.map((tag) => (
        <Badge key={tag} variant={tag === 'critical' ? 'busy' : 'quiet'}>
          {tag}
        </Badge>
      )),
  },
  { title: 'Duration', isEnd: true, isNarrow: true, cell: ({ durationMs }: Check) => milliseconds.format(durationMs) },
  { title: 'Checked', isNarrow: true, cell: ({ checkedAt }: Check) => <Time at={checkedAt} /> },
]

const pollSeconds = 10

// The response has the same body for 200 and 503.
async function fetchReadiness(): Promise<Schemas['Readiness']> {
  const { data, error, response } = await api.GET('/health/ready').catch((cause: unknown) => {
    throw ApiError.unreachable(cause)
  })
  if (data !== undefined) return data
  if (response.status === 503 && typeof error === 'object' && 'checks' in error) return error
  throw new ApiError(response.status, error, response.headers)
}

export const useReadiness = () =>
  useQuery({
    queryKey: ['health', 'ready'],
    queryFn: fetchReadiness,
    staleTime: 0,
    refetchInterval: pollEvery(pollSeconds),
  })
