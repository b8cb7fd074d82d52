/** Translates the stages of a Dockerfile into a shell script for `runInSandbox`. */

interface Instruction {
  readonly name: string;
  readonly value: string;
}

interface Image {
  readonly user: string;
  readonly workdir: string;
  readonly environment: readonly string[];
  /** The entry point with its default arguments. */
  readonly command: readonly string[];
  readonly health: readonly string[];
  readonly ports: readonly string[];
  readonly volumes: readonly string[];
}

/** The stages by name, each with its instructions after FROM; the last stage is `image`. */
export function stagesOf(text: string): Map<string, readonly Instruction[]> {
  const stages = new Map<string, Instruction[]>();
  let current: Instruction[] = [];
  const joined = text.replaceAll(/^#.*\n/gm, '').replaceAll(/\\\n\s*/g, '');
  for (const line of joined.split('\n').filter((one) => one !== '')) {
    const [, name = '', value = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (name === 'FROM') {
      current = [];
      stages.set(/ AS (\w+)$/.exec(value)?.[1] ?? 'image', current);
    } else {
      current.push({ name, value });
    }
  }
  return stages;
}

/** Returns the shell commands that execute a stage's steps below `$base/STAGE`. */
export function stepsOf(stage: string, instructions: readonly Instruction[]): string {
  const root = `"$base/${stage}"`;
  const steps = instructions.map(({ name, value }) => {
    if (name === 'RUN') {
      return `chroot ${root} env TARGETARCH="$TARGETARCH" sh -ec ${quoted(value)}`;
    }
    const [, from = '', source = '', target = ''] =
      name === 'COPY' ? (/^--from=(\w+) (\S+) (\S+)$/.exec(value) ?? []) : [];
    if (from === '') {
      return '';
    }
    const all = source.endsWith('/') ? `${source}.` : source;
    return `mkdir -p ${root}${target} && cp -a "$base/${from}"${all} ${root}${target}`;
  });
  return [`overlay ${stage}`, `devices ${stage}`, ...steps, ''].join('\n');
}

/** Returns the settings with which a container of the stage runs. */
export function imageOf(instructions: readonly Instruction[]): Image {
  const valueOf = (wanted: string): string =>
    instructions.find(({ name }) => name === wanted)?.value ?? '';
  const list = (value: string): string[] => JSON.parse(value) as string[];
  const health = valueOf('HEALTHCHECK');
  return {
    user: valueOf('USER'),
    workdir: valueOf('WORKDIR'),
    environment: valueOf('ENV').split(' '),
    command: [...list(valueOf('ENTRYPOINT')), ...list(valueOf('CMD'))],
    health: list(health.slice(health.indexOf('CMD ') + 'CMD '.length)),
    ports: valueOf('EXPOSE').split(' '),
    volumes: valueOf('VOLUME').split(' '),
  };
}

/** The shell command that runs a program as the image's user, with only the image's environment. */
export function containerCommand(
  stage: string,
  image: Image,
  command: readonly string[],
  environment: readonly string[] = [],
): string {
  const variables = [...image.environment, ...environment].map(quoted);
  const program = `cd ${image.workdir} && exec "$@"`;
  const root = `chroot --userspec=${image.user} "$base/${stage}"`;
  const clean = `${root} env -i PATH=/usr/bin:/bin ${variables.join(' ')}`;
  return `${clean} sh -c ${quoted(program)} sh ${command.map(quoted).join(' ')}`;
}

export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
