import { Argument, type Command } from 'commander'
import { bashScript } from '../completion/bash.ts'
import { fishScript } from '../completion/fish.ts'
import { type CommandCompletions, completionsOf } from '../completion/tree.ts'
import { zshScript } from '../completion/zsh.ts'
import { write } from '../print/write.ts'
import { withExamples } from './add-command.ts'

const scripts: Record<string, (completions: readonly CommandCompletions[]) => string> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

export function addCompletionCommand(program: Command): void {
  const completion = program
    .command('completion')
    .description('print a shell completion script')
    .addArgument(new Argument('<shell>').choices(Object.keys(scripts)))
    .action((shell: string) => write(scripts[shell]?.(completionsOf(program)) ?? ''))
  withExamples(completion, [
    'source <(plat completion bash)    # in ~/.bashrc',
    'source <(plat completion zsh)     # in ~/.zshrc, after compinit',
    'plat completion fish | source     # in ~/.config/fish/config.fish',
  ])
}
