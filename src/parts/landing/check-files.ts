/** The set of patterns with the name `@checks`: what the checks of usual projects rely on. The patterns are compared without regard to case. */

/** Tests: new ones pass, because they can only add to what is checked. */
const TESTS = `
  **/test/** **/tests/** **/spec/** **/specs/** **/__tests__/** **/__mocks__/** **/__snapshots__/** **/__fixtures__/**
  **/testdata/** **/test-data/** **/test_data/** **/fixtures/** **/e2e/** **/cypress/** 
  **/*.test.* **/*.tests.* **/*.spec.* **/*-test.* **/*_test.* **/*_spec.* **/test_* **/test-* **/test.* **/tests.* **/*tests.py
  **/*test.java **/*tests.java **/*test.kt **/*test.scala **/*test.cs **/*tests.cs **/*test.php **/*tests.swift **/*.snap **/*.feature
  **/*.bats **/*.t
`;

/** What decides how tests run, builds are made, and packages are chosen: new ones count, too. */
const SETUP = `
  **/conftest.py **/sitecustomize.py **/usercustomize.py **/*.pth **/pytest.ini **/.pytest.ini **/tox.ini **/noxfile.py **/setup.cfg
  **/setup.py **/pyproject.toml **/.coveragerc **/unittest.py **/unittest/** **/pytest.py **/pytest/** **/_pytest/** **/doctest.py
  **/requirements*.txt **/pipfile* **/poetry.lock **/uv.lock **/pdm.lock **/nose.cfg **/.noserc
  **/package.json **/package-lock.json **/npm-shrinkwrap.json **/yarn.lock **/pnpm-lock.yaml **/pnpm-workspace.yaml **/bun.lock*
  **/.npmrc **/.yarnrc* **/.yarn/** **/.pnp.* **/.pnpmfile.* **/node_modules/** **/.node-version **/.nvmrc **/.tool-versions
  **/.mocharc* **/.taprc* **/.avarc* **/ava.config.* **/jest.config.* **/jest.setup.* **/vitest.* **/vite.config.*
  **/karma.conf.* **/jasmine.json **/cypress.config.* **/cypress.json **/playwright.config.* **/playwright-ct.config.* **/wdio.conf.*
  **/.nycrc* **/.c8rc* **/babel.config.* **/.babelrc* **/.swcrc **/tsconfig*.json **/jsconfig*.json **/bunfig.toml **/deno.json*
  **/deno.lock **/import_map.json **/webpack.config.* **/rollup.config.* **/esbuild.config.* **/turbo.json **/nx.json **/lerna.json
  **/gulpfile.* **/gruntfile.* **/jakefile* **/setuptests.* **/setup-tests.* **/test-setup.* **/globalsetup.* **/global-setup.*
  **/makefile **/gnumakefile **/bsdmakefile **/*.mk **/cmakelists.txt **/*.cmake **/ctesttestfile.cmake **/meson.build **/build.ninja
  **/configure **/configure.ac **/justfile **/.justfile **/taskfile.y*ml **/rakefile **/.rspec **/gemfile* **/*.gemspec **/.simplecov
  **/cargo.toml **/cargo.lock **/build.rs **/.cargo/** **/rust-toolchain* **/clippy.toml **/go.mod **/go.sum **/go.work* **/vendor/modules.txt
  **/pom.xml **/build.gradle* **/settings.gradle* **/gradle.properties **/gradle/** **/gradlew* **/.mvn/** **/mvnw* **/build.xml
  **/build.sbt **/*.csproj **/*.sln **/directory.build.* **/nuget.config **/phpunit.xml* **/composer.json **/composer.lock **/mix.exs
  **/mix.lock **/package.swift **/build.zig **/dub.json **/.luacheckrc **/.busted **/dockerfile* **/docker-compose* **/compose.y*ml
  .github/** .gitlab/** .gitlab-ci* .circleci/** .buildkite/** .woodpecker/** .drone.y*ml .travis.y*ml azure-pipelines* jenkinsfile*
  bitbucket-pipelines* appveyor.y*ml **/ci/** **/.ci/** .husky/** .lefthook* lefthook.y*ml .pre-commit-config.yaml **/.gitattributes
  .gitmodules **/.env **/.env.* **/.envrc **/.mise.toml **/mise.toml **/.direnv/** **/.bazelrc **/build.bazel **/workspace.bazel
  **/module.bazel **/tests.mk **/run-tests* **/run_tests* **/runtests* **/verify.sh **/check.sh
`;

const words = (text: string): string[] => text.trim().split(/\s+/);

const CHECK_FILES: readonly string[] = [...words(TESTS), ...words(SETUP).map((glob) => `+${glob}`)];

/** Puts the patterns of `@checks` in the place of its name. */
export function patternsOf(globs: readonly string[]): readonly string[] {
  return globs.flatMap((glob) => (glob === "@checks" ? CHECK_FILES : [glob]));
}
