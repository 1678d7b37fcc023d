import { Button } from './button.tsx'

interface ShowMoreProps {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }
  left: number
}

export const ShowMore = ({ query, left }: ShowMoreProps) =>
  query.hasNextPage && (
    <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
      Show more ({left.toLocaleString('en')} left)
    </Button>
  )
