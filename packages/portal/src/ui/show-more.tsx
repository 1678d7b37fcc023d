import { Button } from './button.tsx'

interface ShowMoreProps {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }
  /** The number of rows that are not loaded. */
  left: number
}

/** A button that loads the next page of a list, if there is one. */
export const ShowMore = ({ query, left }: ShowMoreProps) =>
  query.hasNextPage && (
    <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
      Show more ({left.toLocaleString('en')} left)
    </Button>
  )
